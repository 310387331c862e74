"""What a producer records: what it tried to publish, and the result."""

from collections.abc import Sequence

from laneway import LanewayError, NewMessage, Published
from laneway.durations import to_seconds
from laneway.errors import OutcomeUnknown

from .ledger import Ledger, error_fields


class PublishLog:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.unknown: list[NewMessage] = []
        """Messages of unknown outcome; their keys make it safe to publish them again."""

    def tried(self, messages: list[NewMessage], ordered: bool) -> None:
        for message in messages:
            self._ledger.record(
                "publish_tried", n=message.payload["n"], channel=message.channel,
                queue=message.queue, kind=message.kind,
                key=message.key, window=message.key_window is not None, ordered=ordered,
                max_attempts=message.max_attempts, priority=message.priority,
                delay=to_seconds(message.delay or 0), keep=message.keep_result is not None,
            )  # fmt: skip

    def results(self, messages: list[NewMessage], results: list[Published]) -> None:
        for message, result in zip(messages, results, strict=True):
            n = message.payload["n"]
            if result.refused:
                self._ledger.record("publish_refused", n=n, status=result.status)
            else:
                self._ledger.record("publish_acknowledged", n=n, id=result.id, status=result.status)

    def flow(self, nodes: Sequence[tuple[int | None, str, str, list[int | None]]]) -> None:
        """Each with its id, name, when it is begun, and after whom."""
        names = ("id", "n", "when", "after")
        self._ledger.record("flow", nodes=[dict(zip(names, node, strict=True)) for node in nodes])

    def undone(self, message: NewMessage, id: int | None, **fields: object) -> None:
        self._ledger.record("publish_rolled_back", n=message.payload["n"], id=id, **fields)

    def failed(self, messages: list[NewMessage], error: Exception) -> None:
        unknown = isinstance(error, OutcomeUnknown) or not isinstance(error, LanewayError)
        for message in messages:
            if unknown:
                self._ledger.record(
                    "publish_unknown", n=message.payload["n"], **error_fields(error)
                )
            else:
                self.undone(message, None, **error_fields(error))
            if unknown and message.key_window is not None:
                self.unknown.append(message)
