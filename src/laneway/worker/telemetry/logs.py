"""Log lines as JSON, with the message's fields."""

import json
import logging
from datetime import UTC, datetime

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
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
