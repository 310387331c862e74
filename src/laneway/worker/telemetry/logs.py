"""Log lines say which message they are about; as JSON too, and with errors that have an end."""

import json
import logging
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime

from laneway.client.shared.error_text import cut_traceback, rendered
from laneway.client.shared.message_fields import MessageFields

FIELDS = ("database", "message_id", "queue", "channel", "kind", "attempt", "fence", "messages")
"""``messages`` is how many a batch has, whose lines are about no single one."""

# Each message is handled in a context of its own, which goes along into threads.
database: ContextVar[str | None] = ContextVar("laneway_database", default=None)
_handled: ContextVar[MessageFields | Sequence[MessageFields] | None] = ContextVar(
    "laneway_message", default=None
)


def handling(handled: MessageFields | Sequence[MessageFields]) -> None:
    """From here on log lines are about this message, or about a batch. Structlog's are too, if the
    application uses it, with ``structlog.contextvars.merge_contextvars``."""
    _handled.set(handled)
    if (structlog := sys.modules.get("structlog.contextvars")) is not None:
        structlog.unbind_contextvars(*FIELDS)
        structlog.bind_contextvars(**context_fields())


def log_fields(message: MessageFields) -> dict[str, object]:
    """For ``extra=`` of a log call."""
    return {
        "message_id": message.id,
        "queue": message.queue,
        "channel": message.channel,
        "kind": message.kind,
        "attempt": message.attempt,
        "fence": message.fence,
    }


def context_fields() -> dict[str, object]:
    """Of the message that is handled here; empty elsewhere."""
    name, handled = database.get(), _handled.get()
    fields: dict[str, object] = {} if name is None else {"database": name}
    if isinstance(handled, MessageFields):
        fields |= log_fields(handled)
    elif handled:
        first = handled[0]
        fields |= {"queue": first.queue, "kind": first.kind, "messages": len(handled)}
    return fields


class MessageContext(logging.Filter):
    """Adds the fields of the message to every line that its handler logs, with any logger. For
    handlers of logging, which see the lines of all loggers; lines elsewhere get none.

    >>> handler.addFilter(MessageContext())
    >>> handler.setFormatter(logging.Formatter(
    ...     "%(levelname)s %(message_id)s: %(message)s", defaults={"message_id": "-"}))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in context_fields().items():
            record.__dict__.setdefault(name, value)
        return True


_OF_LOGGING = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the fields of the message that is handled and what the call had
    as ``extra=``.

    >>> handler.setFormatter(JsonFormatter())
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        given = {name: v for name, v in vars(record).items() if name not in _OF_LOGGING}
        for name, value in (context_fields() | given).items():
            line[f"extra_{name}" if name in line else name] = value
        return json.dumps(line, ensure_ascii=False, default=str)


def with_short_errors(record: logging.LogRecord) -> bool:
    """A filter that drops nothing: formatters of logging take the text of an error that is there
    already, and do not render one of any length."""
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        _, error, trace = record.exc_info
        record.exc_text = cut_traceback(rendered(error, trace)).rstrip("\n")
    return True


logging.getLogger("laneway.worker").addFilter(with_short_errors)
