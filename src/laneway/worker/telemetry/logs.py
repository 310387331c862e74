"""Log lines as JSON, with the message's fields; and errors in them that have an end."""

import json
import logging
from datetime import UTC, datetime

from laneway.client.shared.error_text import cut_traceback, rendered

FIELDS = ("database", "message_id", "queue", "channel", "kind", "attempt", "fence")


class JsonFormatter(logging.Formatter):
    """One JSON object a line.

    >>> handler.setFormatter(JsonFormatter())
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "text": record.getMessage(),
        }
        line |= {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}
        if record.exc_info:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def with_short_errors(record: logging.LogRecord) -> bool:
    """A filter that drops nothing: formatters of logging take the text of an error that is there
    already, and do not render one of any length."""
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        _, error, trace = record.exc_info
        record.exc_text = cut_traceback(rendered(error, trace)).rstrip("\n")
    return True


logging.getLogger("laneway.worker").addFilter(with_short_errors)
