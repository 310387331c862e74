"""Everything that Penstock raises, as one tree.

PenstockError
├── InvalidInput (ValueError)      refused before anything was written
│   ├── InvalidName                a queue, channel, kind, key or schema name
│   ├── InvalidPayload             cannot be written as bytes, text or strict JSON
│   │   └── PayloadTooLarge
│   ├── InvalidTime                a naive datetime, a negative delay, two times at once
│   ├── InvalidOption              an unknown or impossible option
│   ├── InvalidSchedule            a cron expression or a time zone that cannot be used
│   └── DecodeError                a payload that is not what the reader asked for
├── PublishRefused                 .results says what happened to each message
│   ├── BacklogFull
│   └── ChannelClosed
├── ScheduleMissing (LookupError)  no schedule of that name
├── NotEnded (TimeoutError)        a message that was waited for
├── LeaseLost                      somebody else may be working on the message
├── HandlerFailed                  raised in a process of its own, by a type unknown here
│   └── HandlerDied                that process ended
├── SchemaError
│   ├── SchemaMissing
│   ├── SchemaTooOld
│   └── SchemaTooNew
├── ConnectionUnavailable          the outcome of a write under way is unknown
├── DatabaseFailed                 the database refused a statement; .sqlstate says why
├── SparkFailed                    a job or a session of Spark; the text is its own sentence
├── LakeMismatch                   the lake's files or books are not as they should be
├── DriverMissing (ImportError)
└── UnsupportedConnection (TypeError)
"""

from collections.abc import Sequence
from typing import Any


def shown(value: object, most: int = 80) -> str:
    """A value for an error's text: short and printable, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # an int of thousands of digits, or a class that cannot show itself
        return f"<{type(value).__name__}>"
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= most else text[: most - 1] + "…"


class PenstockError(Exception):
    """The root of the tree."""


class InvalidInput(PenstockError, ValueError):
    """What was passed in cannot be used; nothing was written."""


class InvalidName(InvalidInput):
    """A name is empty, too long, or not text that every database can hold."""


class InvalidPayload(InvalidInput):
    """A payload, a header or a state cannot be written."""


class PayloadTooLarge(InvalidPayload):
    """A payload is larger than the client's ``max_payload``."""


class InvalidTime(InvalidInput):
    """A time without a zone, a length out of range, or two times where one is meant."""


class InvalidOption(InvalidInput):
    """An option that does not exist, or has an impossible value."""


class InvalidSchedule(InvalidInput):
    """A cron expression that cannot be read or never ticks, or an unknown time zone."""


class DecodeError(InvalidInput):
    """A payload is not what the reader asked for."""


class PublishRefused(PenstockError):
    """Some messages were not taken; the others of the call were published.

    ``results`` holds one answer per message, in the order of the call.
    """

    def __init__(self, text: str, results: Sequence[Any] = ()) -> None:
        super().__init__(text)
        self.results = tuple(results)
        """Of :class:`penstock.Published`."""


class BacklogFull(PublishRefused):
    """The channel holds as many messages as its policy allows."""


class ChannelClosed(PublishRefused):
    """The channel is being removed and takes no new messages."""


class ScheduleMissing(PenstockError, LookupError):
    """There is no schedule of that name in that queue."""


class NotEnded(PenstockError, TimeoutError):
    """A message has not ended in the time that was given."""


class LeaseLost(PenstockError):
    """The lease ran out, or the message was settled already; nothing was written."""

    def __init__(self, text: str, message_id: int, fence: int) -> None:
        super().__init__(text)
        self.message_id = message_id
        self.fence = fence

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle and copy call the class with what __init__ needs, not only with the text.
        return type(self), (str(self), self.message_id, self.fence), self.__dict__


class HandlerFailed(PenstockError):
    """A handler raised an exception in its process whose type this process does not know."""


class HandlerDied(HandlerFailed):
    """The process that ran a handler ended, by a signal or by exiting."""


class SchemaError(PenstockError):
    """The database does not hold the schema that this version needs."""


class SchemaMissing(SchemaError):
    """Penstock is not installed in this schema of this database."""


class SchemaTooOld(SchemaError):
    """The schema needs an upgrade before this version can work on it."""


class SchemaTooNew(SchemaError):
    """The schema was upgraded beyond what this version knows."""


class ConnectionUnavailable(PenstockError):
    """The database could not be reached, or went away during a call.

    A write that was under way may or may not have happened: publish again with the same key.
    """


class DatabaseFailed(PenstockError):
    """The database refused a statement; nothing of it was written."""

    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


class SparkFailed(PenstockError):
    """Spark could not start, or a job of it failed."""


class LakeMismatch(PenstockError):
    """What was read for the lake is not what was planned: somebody changed the history."""


class DriverMissing(PenstockError, ImportError):
    """A driver or another optional package that is asked for is not installed."""


class UnsupportedConnection(PenstockError, TypeError):
    """A connection that this client cannot work on."""
