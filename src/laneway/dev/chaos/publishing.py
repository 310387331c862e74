"""What a producer records of what it tried to publish; publishes inside an application's
transactions, some of which are rolled back.
"""

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from laneway import LanewayError, NewMessage, Published, Queue
from laneway.durations import to_seconds
from laneway.errors import OutcomeUnknown

from .app_connection import AppConnection
from .config import RunConfig
from .ledger import Ledger, error_fields


class PublishLog:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.unknown: list[NewMessage] = []
        """Messages of unknown outcome; their keys make it safe to publish them again."""

    def tried(self, messages: list[NewMessage], ordered: bool) -> None:
        last = {(message.queue, message.key): number for number, message in enumerate(messages)}
        for number, message in enumerate(messages):
            self._ledger.record(
                "publish_tried", n=message.payload["n"], channel=message.channel,
                queue=message.queue, kind=message.kind,
                key=message.key, window=message.key_window is not None, ordered=ordered,
                max_attempts=message.max_attempts, priority=message.priority,
                delay=to_seconds(message.delay or 0), keep=message.keep_result is not None,
                limits=list(message.limits or ()), mode=message.on_duplicate,
                bound=to_seconds(message.debounce_for or 0),
                last=message.on_duplicate == "keep"
                or last[message.queue, message.key] == number,
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


class TransactionPlan(NamedTuple):
    """One transaction: ``first`` is published in it, ``undone`` after a savepoint that is rolled
    back; ``pause`` is how many seconds it stays open after ``first``."""

    first: NewMessage
    undone: NewMessage | None
    commits: bool
    ordered: bool = False
    pause: float = 0.0


class TransactionalPublisher:
    def __init__(
        self, config: RunConfig, queue: Queue, notes: PublishLog, rng: random.Random
    ) -> None:
        self._config = config
        self._rng = rng
        self._queue = queue
        self._log = notes
        self._app: AppConnection | None = None

    def run(self, plan: TransactionPlan) -> None:
        first, undone = plan.first, plan.undone
        self._log.tried([first], plan.ordered)
        self._log.tried([undone] if undone else [], False)
        try:
            self._app = self._app or AppConnection(self._config)
            kept, gone = self._execute(self._app, plan)
        except Exception as error:
            self._log.failed([first], error)
            if undone:  # whatever became of the first, this one was rolled back or never committed
                self._log.undone(undone, None)
            self._drop_connection()
            return
        if plan.commits:
            self._log.results([first], [kept])
        else:
            # Of a key that was in use, the answer has the id of another message.
            self._log.undone(first, kept.id if kept.status == "published" else None)
        if undone and gone:
            self._log.undone(undone, gone.id)

    def _drop_connection(self) -> None:
        if self._app is not None:
            self._app.close()
        self._app = None

    def _execute(
        self, app: AppConnection, plan: TransactionPlan
    ) -> tuple[Published, Published | None]:
        gone = None
        app.begin()
        if self._rng.random() < 0.1:
            self._wait(0.5)  # so that the transaction's own timestamp is in the past
        kept = self._queue.publish_many([plan.first], connection=app.connection)[0]
        self._wait(plan.pause)
        if plan.undone is not None:
            app.execute("savepoint undone")
            gone = self._queue.publish_many([plan.undone], connection=app.connection)[0]
            app.execute("rollback to savepoint undone")
        app.execute("commit" if plan.commits else "rollback")
        return kept, gone

    def _wait(self, seconds: float) -> None:
        if self._config.engine != "sqlite":  # where nobody else could write in the meantime
            time.sleep(seconds)
