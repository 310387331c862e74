"""What a producer writes down: what it tried to publish, and what came of it."""

from penstock import NewMessage, PenstockError, Published
from penstock.errors import ConnectionUnavailable

from .ledger import Ledger


class Notes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.unsure: list[NewMessage] = []
        """Nobody knows what became of them; their keys keep them from being there twice."""

    def tried(self, messages: list[NewMessage], ordered: bool) -> None:
        for message in messages:
            self._ledger.note(
                "publish_tried", n=message.payload["n"], channel=message.channel, kind=message.kind,
                key=message.key, window=message.key_window is not None, ordered=ordered,
                max_attempts=message.max_attempts, priority=message.priority,
                delay=0.0 if message.delay is None else message.delay.total_seconds(),
            )  # fmt: skip

    def answers(self, messages: list[NewMessage], answers: list[Published]) -> None:
        for message, answer in zip(messages, answers, strict=True):
            n = message.payload["n"]
            if answer.refused:
                self._ledger.note("publish_refused", n=n, status=answer.status)
            else:
                self._ledger.note("publish_acknowledged", n=n, id=answer.id, status=answer.status)

    def undone(self, message: NewMessage, id: int | None) -> None:
        self._ledger.note("publish_rolled_back", n=message.payload["n"], id=id)

    def failed(self, messages: list[NewMessage], error: Exception) -> None:
        unknown = isinstance(error, ConnectionUnavailable) or not isinstance(error, PenstockError)
        for message in messages:
            if unknown:
                self._ledger.note("publish_unknown", n=message.payload["n"], error=str(error))
            else:
                self.undone(message, None)
            if unknown and message.key_window is not None:
                self.unsure.append(message)
