"""Publishing a long input: in batches, with a bar, to be stopped and gone on with."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ConnectionUnavailable, InvalidInput, PublishRefused

from .lines import Form, Line, check, parsed
from .output import emit_all, say
from .rejects import Keep

if TYPE_CHECKING:
    from penstock import NewMessage, Published, Queue

_TOLD = 20


class Answer(NamedTuple):
    """What became of a line; ``why`` it was left out, if it was."""

    line: Line
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
class Account:
    """What became of the lines so far."""

    published: int = 0
    existing: int = 0
    bad: int = 0
    last: int = 0
    stopped: bool = False

    def add(self, answers: list[Answer]) -> None:
        for answer in answers:
            self.published += answer.status == "published"
            self.existing += answer.status == "existing"
            if answer.why is not None:
                self._refuse(answer.line, answer.why)

    def _refuse(self, line: Line, why: str) -> None:
        self.bad += 1
        if self.bad <= _TOLD:
            say(f"line {line.number}: {why}")
        elif self.bad == _TOLD + 1:
            say("… more bad lines are counted, not shown (--rejects keeps them)")


@dataclass(slots=True)
class Pump:
    """Publishes batches of lines; each is committed before the next is read."""

    client: "Queue"
    form: Form
    pattern: "NewMessage"
    account: Account
    keep: Keep
    as_json: bool

    def run(self, batches: Iterable[list[Line]], moved: Callable[[list[Line]], None]) -> None:
        """Ctrl-C ends it between two batches, at once if it only waits for input."""
        try:
            for batch in batches:
                with held_back() as interrupted:
                    self._settle(batch, self._publish(batch))
                    moved(batch)
                if interrupted:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.account.stopped = True

    def _settle(self, batch: list[Line], answers: list[Answer]) -> None:
        """The account first: a reader who has enough, or a full disk, must find it whole."""
        self.account.add(answers)
        self.account.last = batch[-1].number
        if bad := [answer.line for answer in answers if answer.why is not None]:
            self.keep(bad)
        if self.as_json:
            emit_all(answer.document() for answer in answers)

    def _publish(self, batch: list[Line]) -> list[Answer]:
        read = [(line, self._read(line)) for line in batch]
        good = [message for _, message in read if not isinstance(message, InvalidInput)]
        results = iter(self._published(good, batch))
        return [
            Answer(line, None, "bad", str(message))
            if isinstance(message, InvalidInput)
            else _answer(line, next(results))
            for line, message in read
        ]

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
                f"all before them were. Go on with --skip {self.account.last}: that doubles no "
                "line whose key still holds, which is until its message has ended and its "
                "--key-window is over."
            )
            raise


def _answer(line: Line, result: "Published") -> Answer:
    if result.id is None:
        return Answer(line, None, "bad", f"the channel is {result.status}")
    return Answer(line, result.id, result.status)


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
            bytes_read = sum(len(line.raw) + 1 for line in batch)
            bar.update(task, advance=bytes_read, description=f"published {count:,}")

        yield moved
