"""A claimed message on its way through the worker."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from penstock.client.fields import MessageFields
from penstock.plan import Row

if TYPE_CHECKING:
    from .handlers import Handler

Interruption = Literal["lost", "shutdown"]


class Job(MessageFields):
    """The message with the worker's notes on it."""

    __slots__ = (
        "acted",
        "apart",
        "deadline",
        "handler",
        "in_transaction",
        "interruption",
        "lined_up",
        "lost_flag",
        "slot",
        "started",
        "task",
    )

    def __init__(
        self,
        row: Row,
        claimed_at: datetime,
        until: datetime,
        deadline: float,
        handler: "Handler | None",
    ) -> None:
        self._row = row
        self.claimed_at = claimed_at
        self.until = until
        self.deadline = deadline  # when the lease ends at the earliest, by our own clock
        self.handler = handler
        self.slot: int | None = None
        self.lined_up = 0.0
        self.started = 0.0
        self.task: asyncio.Task[None] | None = None
        self.interruption: Interruption | None = None
        self.acted = False  # the handler settled it itself
        self.apart = False  # a transaction may hold the lock of its lease: who writes to it waits
        self.in_transaction = (
            False  # the handler settled it in a transaction that may yet roll back
        )
        self.lost_flag = False

    @property
    def lost(self) -> bool:
        return self.lost_flag

    def log_fields(self) -> dict[str, object]:
        """For ``extra=`` of a log call."""
        return {
            "message_id": self.id,
            "queue": self.queue,
            "channel": self.channel,
            "kind": self.kind,
            "attempt": self.attempt,
            "fence": self.fence,
        }
