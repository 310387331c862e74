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
            yield self._say("add_channels", listed(missing), now)
            found |= yield from self._known(missing)
        return found

    def _known(self, names: Sequence[Names]) -> Plan[dict[Names, Gate]]:
        rows = yield self._say("channels_of", listed(names))
        return {(queue, name): Gate(*gate) for queue, name, *gate in rows}
