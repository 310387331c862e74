"""All that doctor looks at, one after the other."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.errors import ConnectionUnavailable, PenstockError
from penstock.insight import Finding

from .config import Config
from .connect import open_config
from .local_checks import clock_skew, pooler, versions

if TYPE_CHECKING:
    from penstock import Queue

_MOST_NAMED = 5
_LATE = timedelta(minutes=1)
_LATELY = timedelta(days=1)
_MOST_LETTERS = 1000


def examined(config: Config) -> Iterator[Finding]:
    """This machine first, then what the database says, then the queues."""
    yield from versions(config)
    with open_config(config) as client:
        connection = _connection(client)
        yield connection
        if connection.level == "fail":
            return
        yield clock_skew(client)
        found = _tried("database", client, lambda client: client.examine())
        yield from found
        yield from pooler(config)
        if all(finding.level != "fail" for finding in found if finding.check == "schema"):
            yield from _tried("dead letters", client, _dead_letters)
            yield from _tried("paused channels", client, _channels)
            yield from _tried("schedules", client, _schedules)


def _tried(
    check: str, client: "Queue", look: Callable[["Queue"], Sequence[Finding]]
) -> Sequence[Finding]:
    """What one check may not see must not keep the others from looking."""
    try:
        return look(client)
    except PenstockError as error:
        mend = "Look with the rights of the schema's owner, or of the admin role."
        return [Finding(check, "warn", f"Could not be looked at: {error}.", mend)]


def _connection(client: "Queue") -> Finding:
    try:
        client.clock()
    except ConnectionUnavailable as error:
        mend = "Check the URL, that the server runs, and that it lets you in from here."
        return Finding("connection", "fail", f"{error}.", mend)
    except PenstockError as error:
        return Finding("connection", "fail", f"{error}.", "See the text.")
    return Finding("connection", "ok", "The database answers.")


def _dead_letters(client: "Queue") -> Sequence[Finding]:
    letters = client.dead_letters.list(since=client.clock() - _LATELY, limit=_MOST_LETTERS)
    if not letters:
        return [Finding("dead letters", "ok", "No message was given up in the last day.")]
    count = f"{_MOST_LETTERS} or more" if len(letters) == _MOST_LETTERS else str(len(letters))
    why = Counter(
        f"{letter.queue}, {letter.kind or 'no kind'}: {letter.reason}" for letter in letters
    )
    says = f"Given up in the last day: {count} ({_few([name for name, _ in why.most_common()])})."
    return [Finding("dead letters", "warn", says, "penstock dead list, then redrive or discard.")]


def _channels(client: "Queue") -> Sequence[Finding]:
    paused = [info for info in client.channels(paused=True) if info.numbers.waiting]
    names = [f"{info.queue}/{info.channel} ({info.numbers.waiting:,})" for info in paused]
    if not names:
        return [Finding("paused channels", "ok", "No paused channel has messages waiting.")]
    says = f"Paused, with messages waiting: {_few(names)}."
    mend = "penstock channels resume CHANNEL --queue QUEUE"
    return [Finding("paused channels", "warn", says, mend)]


def _schedules(client: "Queue") -> Sequence[Finding]:
    found, now = client.schedules.list(), client.clock()
    broken = [f"{s.queue}/{s.name}: {s.error}" for s in found if s.error]
    if broken:
        mend = "State them again with a message, queue or expression that works."
        return [Finding("schedules", "fail", f"Cannot fire: {_few(broken)}.", mend)]
    late = [f"{s.queue}/{s.name}" for s in found if s.look_at and now - s.look_at > _LATE]
    if late:
        mend = "Nobody fires schedules: start a worker, or call queue.fire_schedules()."
        return [Finding("schedules", "fail", f"Overdue: {_few(late)}.", mend)]
    return [Finding("schedules", "ok", f"{len(found)}, none of them overdue or broken.")]


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
