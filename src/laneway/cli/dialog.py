"""What a command asks before it changes or deletes, and hints for names that do not exist."""

import os
import select
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from laneway.spelling import nearest

from .exits import Code
from .output import printable, say

if TYPE_CHECKING:
    from laneway import Queue


def confirm(question: str, yes: bool) -> None:
    """Returns only if somebody agreed."""
    if yes:
        return
    if not sys.stdin.isatty():
        say(f"{question} Cannot ask without a terminal: add --yes to go ahead.")
        raise typer.Exit(Code.USAGE)
    answer = _answer(printable(question))
    if answer is not Code.OK:
        say("Nothing was done.")
        raise typer.Exit(answer)


def _answer(question: str) -> Code:
    try:
        while True:
            sys.stderr.write(f"{question} [y/N]: ")
            sys.stderr.flush()
            _wait_for_a_line()
            line = sys.stdin.readline()
            match line.strip().lower():
                case "y" | "yes":
                    return Code.OK
                case "" | "n" | "no":
                    if not line:
                        say("")  # Ctrl-D leaves the cursor behind the question
                    return Code.FAILED
            say("Please answer y or n.")
    except KeyboardInterrupt:
        say("")
        return Code.INTERRUPTED


def _wait_for_a_line() -> None:
    """Wait until somebody typed a line, or pressed Ctrl-C.

    A read alone would miss a Ctrl-C that arrives after Python last looked for
    signals and before the read blocks: it would wait for a key that nobody
    presses. The pipe remembers the signal.
    """
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer)
    try:
        while sys.stdin not in select.select([sys.stdin, reader], [], [])[0]:
            os.read(reader, 64)
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


_MAX_NAMES = 10


def no_match(client: "Queue", what: str, queue: str | None) -> str:
    """``No message matches.``, and if the queue is empty, which queues there are."""
    if queue is not None:
        queues = sorted({stats.queue for stats in client.stats()})
        if queue not in queues:
            found = existing("queues", queue, queues)
            return f"No {what} matches: queue {queue!r} has no messages; {found}."
    return f"No {what} matches."


def note_unused_channels(client: "Queue", names: Iterable[str]) -> None:
    """Channels need not exist to be limited or paused, but a name nobody uses may be a typo."""
    from laneway import Policy

    for name in names:
        channel = client.channel(name)
        stats = channel.stats()
        if channel.policy() == Policy() and not (
            stats.waiting or stats.scheduled or stats.leased or stats.dead
        ):
            say(
                f"Note: channel {name!r} of queue {client.name!r} has no messages and no limits; "
                "check the name with laneway channels."
            )


def note_unknown_queue(client: "Queue", name: str | None, *, may_be_new: bool = False) -> None:
    """A queue is there as soon as something is published to it, but a name that nothing else knows
    may be a typo. ``name`` is what was typed; one that ``may_be_new`` is noted only if it is nearly
    that of another queue."""
    if name is None:
        return
    from laneway.errors import ConnectionUnavailable, LanewayError

    try:
        known = _known_queues(client)
    except ConnectionUnavailable:
        raise
    except LanewayError:  # no schema, or no right to look: the command itself says what is wrong
        return
    if name in known:
        return
    near = nearest(name, known, 0.8)
    if near or not may_be_new:
        hint = f": did you mean {near!r}?" if near else "."
        say(f"Note: queue {name!r} has no messages, workers, schedules or subscriptions{hint}")


def _known_queues(client: "Queue") -> set[str]:
    return {
        *(stats.queue for stats in client.stats()),
        *(queue for worker in client.workers() for queue in worker.queues),
        *(schedule.queue for schedule in client.schedules.list()),
        *(subscription.queue for subscription in client.subscriptions()),
        *(pause.queue for pause in client.pauses()),
    }


def existing(what: str, name: str, names: Iterable[str]) -> str:
    """The most similar name, or which names there are."""
    found = sorted(names)
    if near := nearest(name, found):
        return f"perhaps {near!r} is meant"
    if not found:
        return f"there are no {what}"
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return f"{what}: {', '.join(found[:_MAX_NAMES])}{more}"
