"""Publishes a long input in batches, with a progress bar; it can be interrupted and continued."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from laneway.errors import ConnectionUnavailable, InvalidInput, PublishRefused

from .output import emit_all, say
from .publish_lines import InputLine, PayloadFormat, SaveRejects, check, parsed

if TYPE_CHECKING:
    from laneway import NewMessage, Published, Queue

_MAX_SHOWN = 20


class LineResult(NamedTuple):
    """The result of one line; ``why`` it was refused, if it was."""

    line: InputLine
    id: int | None
    status: str
    why: str | None = None

    def document(self) -> dict[str, object]:
        document: dict[str, object] = {
            "line": self.line.number,
            "id": self.id,
            "status": self.status,
        }
        return document if self.why is None else document | {"error": self.why}


@dataclass(slots=True)
class PublishCounts:
    """The results so far."""

    published: int = 0
    existing: int = 0
    replaced: int = 0
    bad: int = 0
    last: int = 0
    stopped: bool = False

    def add(self, results: list[LineResult]) -> None:
        for result in results:
            self.published += result.status == "published"
            self.existing += result.status == "existing"
            self.replaced += result.status == "replaced"
            if result.why is not None:
                self._refuse(result.line, result.why)

    def _refuse(self, line: InputLine, why: str) -> None:
        self.bad += 1
        if self.bad <= _MAX_SHOWN:
            say(f"line {line.number}: {why}")
        elif self.bad == _MAX_SHOWN + 1:
            say("… further bad lines are only counted (--rejects saves them)")


@dataclass(slots=True)
class BulkPublisher:
    """Publishes batches of lines; each batch is committed before the next is read."""

    client: "Queue"
    format: PayloadFormat
    pattern: "NewMessage"
    counts: PublishCounts
    save: SaveRejects
    as_json: bool

    def run(
        self, batches: Iterable[list[InputLine]], moved: Callable[[list[InputLine]], None]
    ) -> None:
        """Ctrl-C stops it between two batches, or at once while it waits for input."""
        try:
            for batch in batches:
                with delayed_interrupt() as interrupted:
                    self._settle(batch, self._publish(batch))
                    moved(batch)
                if interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.counts.stopped = True

    def _settle(self, batch: list[InputLine], results: list[LineResult]) -> None:
        """Counts first: they must be right even if writing the output fails."""
        self.counts.add(results)
        self.counts.last = batch[-1].number
        if bad := [result.line for result in results if result.why is not None]:
            self.save(bad)
        if self.as_json:
            emit_all(result.document() for result in results)

    def _publish(self, batch: list[InputLine]) -> list[LineResult]:
        read = [(line, self._read(line)) for line in batch]
        good = [message for _, message in read if not isinstance(message, InvalidInput)]
        results = iter(self._published(good, batch))
        return [
            LineResult(line, None, "bad", str(message))
            if isinstance(message, InvalidInput)
            else _line_result(line, next(results))
            for line, message in read
        ]

    def _read(self, line: InputLine) -> "NewMessage | InvalidInput":
        """Checked one by one, so that a bad line does not make its whole batch fail."""
        try:
            message = parsed(line.content, self.format, self.pattern)
            check(message)
        except InvalidInput as error:
            return error
        return message

    def _published(
        self, messages: list["NewMessage"], batch: list[InputLine]
    ) -> Sequence["Published"]:
        try:
            return self.client.publish_many(messages)
        except PublishRefused as refused:
            return refused.results
        except ConnectionUnavailable:
            say(
                f"It is unknown whether lines {batch[0].number} to {batch[-1].number} were "
                "published; all lines before them were. "
                f"Continue with --skip {self.counts.last}: lines with "
                "a key are not published twice while the key is held, i.e. until the message has "
                "ended and its --key-window is over."
            )
            raise


def _line_result(line: InputLine, result: "Published") -> LineResult:
    if result.id is None:
        return LineResult(line, None, "bad", f"the channel is {result.status}")
    return LineResult(line, result.id, result.status)


@contextmanager
def delayed_interrupt() -> Iterator[list[int]]:
    """Delays the first Ctrl-C to the end of the block; the second one takes effect at once."""
    interrupted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(size: int | None) -> Iterator[Callable[[list[InputLine]], None]]:
    """A progress bar on stderr in a terminal, and nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda batch: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, count = bar.add_task("publishing", total=size), 0

        def moved(batch: list[InputLine]) -> None:
            nonlocal count
            count += len(batch)
            bytes_read = sum(len(line.raw) + 1 for line in batch)
            bar.update(task, advance=bytes_read, description=f"published {count:,}")

        yield moved
