"""Progress of the demo: a live table in a terminal, lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, Self

from laneway import ChannelStats, HistoryEntry

from .tenants import GROUPS, group_of

_EVERY = 2.0  # seconds between two lines


class View(Protocol):
    def say(self, text: str) -> None: ...

    def show(self, numbers: Sequence[ChannelStats], entries: Sequence[HistoryEntry]) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open_view() -> View:
    return LiveView() if sys.stdout.isatty() and find_spec("rich") else LineView()


class LineView:
    """A line every two seconds."""

    def __init__(self) -> None:
        self._shown = 0.0

    def say(self, text: str) -> None:
        print(text, flush=True)

    def show(self, numbers: Sequence[ChannelStats], entries: Sequence[HistoryEntry]) -> None:
        if time.monotonic() - self._shown < _EVERY:
            return
        self._shown = time.monotonic()
        waiting = sum(n.waiting + n.scheduled for n in numbers)
        running = sum(n.leased for n in numbers)
        done = sum(entry.outcome == "completed" for entry in entries)
        self.say(f"  waiting {waiting:>5}   running {running:>3}   completed {done:>5}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LiveView:
    """A live table, with the messages above it."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(refresh_per_second=8)

    def say(self, text: str) -> None:
        self._live.console.print(text, highlight=False)

    def show(self, numbers: Sequence[ChannelStats], entries: Sequence[HistoryEntry]) -> None:
        self._live.update(_table(numbers, entries))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def _table(numbers: Sequence[ChannelStats], entries: Sequence[HistoryEntry]) -> Any:
    from rich.table import Table

    waiting: Counter[str] = Counter()
    leased: Counter[str] = Counter()
    for n in numbers:
        waiting[group_of(n.channel)] += n.waiting + n.scheduled
        leased[group_of(n.channel)] += n.leased
    done = Counter(group_of(e.channel) for e in entries if e.outcome == "completed")
    expired = Counter(group_of(e.channel) for e in entries if e.outcome == "expired")
    table = Table("tenant", box=None)
    for title in ("waiting", "running", "done", "expired"):
        table.add_column(title, justify="right")
    table.add_column("share of completed")
    total = done.total() or 1
    for group in GROUPS:
        counts = (waiting, leased, done, expired)
        bar = "█" * round(40 * done[group] / total)
        table.add_row(group, *(str(count[group]) for count in counts), bar)
    return table
