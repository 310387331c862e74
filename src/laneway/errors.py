"""All errors that Laneway raises.

LanewayError
├── InvalidInput (ValueError)      rejected before anything was written
│   ├── InvalidName                a queue, channel, kind, key or schema name
│   ├── InvalidPayload             cannot be written as bytes, text or strict JSON
│   │   └── PayloadTooLarge
│   ├── InvalidTime                a naive datetime, a negative delay, two times at once
│   ├── InvalidOption              an unknown or impossible option
│   ├── InvalidCall (TypeError)    arguments that a task cannot be called with
│   ├── InvalidSchedule            a cron expression or a time zone that cannot be used
│   └── DecodeError                a payload that is not what the reader asked for
├── PublishRefused                 .results says what happened to each message
│   ├── BacklogFull
│   └── ChannelClosed
├── ScheduleMissing (LookupError)  no schedule of that name
├── FlowMissing (LookupError)      no such flow, or a message that belongs to none
├── CountChanged                   more or fewer dead letters match than were expected
├── NotAllowed (PermissionError)   an operator lacks the right, or the channel is hidden from it
├── NotEnded (TimeoutError)        a message has not ended within the timeout of wait()
├── NoResult                       a message ended without a result to give; .ending says how
│   ├── ResultMissing              it completed, and its result is not kept, or no longer
│   ├── MessageDead                it is a dead letter, or was one that was discarded
│   ├── MessageCancelled
│   ├── MessageLapsed              it was not started in time
│   └── MessageUnknown (LookupError)
├── LeaseLost                      the lease has ended; another worker may have the message
├── HandlerFailed                  raised in a handler's process, of a type that cannot be imported
│   └── HandlerDied                that process ended
├── SchemaError
│   ├── SchemaMissing
│   ├── SchemaTooOld
│   └── SchemaTooNew
├── ConnectionUnavailable          the database could not be reached; nothing was written
│   └── OutcomeUnknown             it went silent or away during a write, which may have happened
├── DatabaseFailed                 the database refused a statement; .sqlstate says why
├── SparkFailed                    a job or a session of Spark; the text is its own sentence
├── LakeMismatch                   the lake's files do not match its catalog
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


def with_article(name: str) -> str:
    """``an int``, ``a str``, ``a UUID``, ``an O``: as the name is spoken."""
    first = name[:1].upper()
    vowel = first in "AEFHILMNORSX" if len(name) == 1 else first in "AEIO" or name[:2] == "un"
    return f"{'an' if vowel else 'a'} {name}"


class LanewayError(Exception):
    """The base of all errors."""


class InvalidInput(LanewayError, ValueError):
    """An argument cannot be used; nothing was written."""


class InvalidName(InvalidInput):
    """A name is empty, too long, or holds characters that a database cannot store."""


class InvalidPayload(InvalidInput):
    """A payload, a header or a state cannot be written."""


class PayloadTooLarge(InvalidPayload):
    """A payload is larger than the client's ``max_payload``."""


class InvalidTime(InvalidInput):
    """A time without a zone, a length out of range, or two times where one is meant."""


class InvalidOption(InvalidInput):
    """An option that does not exist, or has an impossible value."""


class InvalidCall(InvalidInput, TypeError):
    """The arguments do not fit the task's signature, or it cannot be called this way."""


class InvalidSchedule(InvalidInput):
    """A cron expression that cannot be read or never ticks, or an unknown time zone."""


class DecodeError(InvalidInput):
    """A payload is not what the reader asked for."""


class PublishRefused(LanewayError):
    """Some messages were refused; the others of the call were published.

    ``results`` holds one result per message, in the order of the call.
    """

    def __init__(self, text: str, results: Sequence[Any] = ()) -> None:
        super().__init__(text)
        self.results = tuple(results)
        """Of :class:`laneway.Published`."""


class BacklogFull(PublishRefused):
    """The channel holds as many messages as its policy allows."""


class ChannelClosed(PublishRefused):
    """The channel is being removed and takes no new messages."""


class ScheduleMissing(LanewayError, LookupError):
    """There is no schedule of that name in that queue."""


class FlowMissing(LanewayError, LookupError):
    """There is no such flow, or the message belongs to none."""


class CountChanged(LanewayError):
    """A bulk operation was not started: not as many dead letters match as were expected."""

    def __init__(self, text: str, count: int) -> None:
        super().__init__(text)
        self.count = count

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.count), self.__dict__


class NotAllowed(LanewayError, PermissionError):
    """A principal lacks the right to a verb, or may not touch that channel."""


class NotEnded(LanewayError, TimeoutError):
    """A message has not ended within the timeout."""


class NoResult(LanewayError):
    """A message ended, and there is no result to give. ``ending`` says how it ended."""

    def __init__(self, text: str, ending: Any) -> None:
        super().__init__(text)
        self.ending = ending
        """A :class:`laneway.MessageEnd`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.ending), self.__dict__


class ResultMissing(NoResult):
    """The message completed, and its result was never kept, or is no longer."""


class MessageDead(NoResult):
    """The message is a dead letter, or was one and was discarded."""


class MessageCancelled(NoResult):
    """The message was cancelled."""


class MessageLapsed(NoResult):
    """The message was not started before its ``expires_at``."""


class MessageUnknown(NoResult, LookupError):
    """Nothing is known of the message: it never was, or it ended without a trace."""


class LeaseLost(LanewayError):
    """The lease ran out, or the message was settled already; nothing was written."""

    def __init__(self, text: str, message_id: int, fence: int) -> None:
        super().__init__(text)
        self.message_id = message_id
        self.fence = fence

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle and copy call the class with what __init__ needs, not only with the text.
        return type(self), (str(self), self.message_id, self.fence), self.__dict__


class HandlerFailed(LanewayError):
    """A handler raised an exception in its process whose type this process does not know."""


class HandlerDied(HandlerFailed):
    """The process that ran a handler ended, by a signal or by exiting."""


class SchemaError(LanewayError):
    """The database does not hold the schema that this version needs."""


class SchemaMissing(SchemaError):
    """Laneway is not installed in this schema of this database."""


class SchemaTooOld(SchemaError):
    """The schema needs an upgrade before this version can work on it."""


class SchemaTooNew(SchemaError):
    """The schema was upgraded beyond what this version knows."""


class ConnectionUnavailable(LanewayError):
    """The database could not be reached, went away, or did not answer in time. Nothing was written,
    unless it is OutcomeUnknown."""


class OutcomeUnknown(ConnectionUnavailable):
    """The database went away or fell silent during a write, which may or may not have happened.

    Do it again if twice is as good as once: publish with the same key, complete and extend, or set
    the same policy.
    """


class DatabaseFailed(LanewayError):
    """The database refused a statement; nothing of it was written."""

    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


class SparkFailed(LanewayError):
    """Spark could not start, or a job of it failed."""


class LakeMismatch(LanewayError):
    """What was read for the lake is not what was planned: somebody changed the history."""


class DriverMissing(LanewayError, ImportError):
    """A driver or another optional package that is asked for is not installed."""


class UnsupportedConnection(LanewayError, TypeError):
    """A connection that this client cannot work on."""
