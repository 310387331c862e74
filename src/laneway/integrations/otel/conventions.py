"""Names and values of the messaging conventions (semantic conventions 1.27 and later), and ours.

Written out here: the package that has them as constants marks all of them as unstable, and is one
more to install.
"""

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

Value = str | int
OperationType = Literal["send", "receive", "process", "settle"]

SYSTEM = "messaging.system"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
BATCH_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

CHANNEL = "messaging.laneway.channel"
KIND = "messaging.laneway.kind"
ATTEMPT = "messaging.laneway.attempt"
FENCE = "messaging.laneway.fence"

SENT = "messaging.client.sent.messages"
CONSUMED = "messaging.client.consumed.messages"
OPERATION_DURATION = "messaging.client.operation.duration"
PROCESS_DURATION = "messaging.process.duration"

# As the conventions advise for both durations.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


def operation_attributes(
    name: str, operation_type: OperationType, destination: str | None
) -> dict[str, Value]:
    """Those that spans and metrics share."""
    found: dict[str, Value] = {
        SYSTEM: "laneway",
        OPERATION_NAME: name,
        OPERATION_TYPE: operation_type,
    }
    if destination is not None:
        found[DESTINATION] = destination
    return found


def span_name(name: str, destination: str | None) -> str:
    return name if destination is None else f"{name} {destination}"


def common(names: Sequence[str]) -> str | None:
    """The one destination of a batch, if it has one."""
    return names[0] if names and all(name == names[0] for name in names) else None


def error_type(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def server_attributes(url: str) -> dict[str, Value]:
    """Host and port of the database, never the credentials; nothing for a file."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # several hosts
        return {}
    if not host:
        return {}
    return {SERVER_ADDRESS: host} if port is None else {SERVER_ADDRESS: host, SERVER_PORT: port}
