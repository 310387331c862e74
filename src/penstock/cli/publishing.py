"""Publishing a long input: in batches, with a bar, to be stopped and gone on with."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO

from penstock.errors import ConnectionUnavailable, InvalidInput, PublishRefused

from .lines import Bad, Form, Line, check, parsed
from .output import emit, say

if TYPE_CHECKING:
    from penstock import NewMessage, Published, Queue

_TOLD = 20


@dataclass(slots=True)
class Account:
    """What became of the lines so far."""

    published: int = 0
    existing: int = 0
    bad: int = 0
    last: int = 0
    stopped: bool = False
    rejects: BinaryIO | None = None
    as_json: bool = False

    def take(self, line: Line, result: "Published") -> None:
        if result.id is None:
            self.refuse(Bad(line, f"the channel is {result.status}"))
            return
        self.published += result.status == "published"
        self.existing += result.status == "existing"
        if self.as_json:
            emit({"line": line.number, "id": result.id, "status": result.status})

    def refuse(self, bad: Bad) -> None:
        """Says which line and why, and keeps the line as it was."""
        self.bad += 1
        if self.bad <= _TOLD:
            say(f"line {bad.line.number}: {bad.why}")
        elif self.bad == _TOLD + 1:
            say("… more bad lines are counted, not shown (--rejects keeps them)")
        if self.rejects is not None:
            self.rejects.write(bad.line.content + b"\n")
        if self.as_json:
            emit({"line": bad.line.number, "id": None, "status": "bad", "error": bad.why})


@dataclass(slots=True)
class Pump:
    """Publishes batches of lines; each is committed before the next is read."""

    client: "Queue"
    form: Form
    pattern: "NewMessage"
    account: Account = field(default_factory=Account)

    def run(self, batches: Iterable[list[Line]], moved: Callable[[list[Line]], None]) -> None:
        """Ctrl-C ends it between two batches, at once if it only waits for input."""
        try:
            for batch in batches:
                with held_back() as interrupted:
                    self._publish(batch)
                    self.account.last = batch[-1].number
                    moved(batch)
                if interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.account.stopped = True

    def _publish(self, batch: list[Line]) -> None:
        read = [(line, self._read(line)) for line in batch]
        good = [message for _, message in read if not isinstance(message, InvalidInput)]
        results = iter(self._published(good, batch))
        for line, message in read:
            if isinstance(message, InvalidInput):
                self.account.refuse(Bad(line, str(message)))
            else:
                self.account.take(line, next(results))

    def _read(self, line: Line) -> "NewMessage | InvalidInput":
        """One bad line must not take its batch along, so each is checked by itself."""
        try:
            message = parsed(line.content, self.form, self.pattern)
            check(message)
        except InvalidInput as error:
            return error
        return message

    def _published(self, messages: list["NewMessage"], batch: list[Line]) -> Sequence["Published"]:
        try:
            return self.client.publish_many(messages)
        except PublishRefused as refused:
            return refused.results
        except ConnectionUnavailable:
            say(
                f"Whether lines {batch[0].number} to {batch[-1].number} were published is unknown; "
                f"all before them were. Go on with --skip {self.account.last}; keys keep that from "
                "doubling any."
            )
            raise


@contextmanager
def held_back() -> Iterator[list[int]]:
    """The first Ctrl-C waits for the end of the block; the second one does not."""
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
def progress(size: int | None) -> Iterator[Callable[[list[Line]], None]]:
    """A bar on stderr if a person looks at it, and nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda batch: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, count = bar.add_task("publishing", total=size), 0

        def moved(batch: list[Line]) -> None:
            nonlocal count
            count += len(batch)
            bytes_read = sum(len(line.content) + 1 for line in batch)
            bar.update(task, advance=bytes_read, description=f"published {count:,}")

        yield moved
