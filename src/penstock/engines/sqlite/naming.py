"""Channels by name: found, or made."""

from collections.abc import Sequence
from typing import NamedTuple

from penstock.plan import Plan

from .base import Base, listed

Names = tuple[str, str]
"""Of a queue and a channel."""


class Gate(NamedTuple):
    """What a publisher must know of a channel; ``room`` is None where there is no limit."""

    id: int
    closing: bool
    room: int | None


class Naming(Base):
    def _channels(self, names: Sequence[Names], now: int) -> Plan[dict[Names, Gate]]:
        """Those that are new get a row."""
        found = yield from self._known(names)
        missing = [name for name in names if name not in found]
        if missing:
            yield self._each("add_channel", [(*name, now) for name in missing])
            found |= yield from self._known(missing)
        return found

    def _known(self, names: Sequence[Names]) -> Plan[dict[Names, Gate]]:
        by_queue: dict[str, list[str]] = {}
        for queue, name in names:
            by_queue.setdefault(queue, []).append(name)
        found: dict[Names, Gate] = {}
        for queue, channels in by_queue.items():
            rows = yield self._say("channels_of", queue, listed(channels))
            found |= {(queue, name): Gate(*gate) for name, *gate in rows}
        return found
