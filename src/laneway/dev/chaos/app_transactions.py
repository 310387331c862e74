"""Publishes inside an application's transactions, some of which are rolled back."""

import random
import time
from typing import NamedTuple

from laneway import NewMessage, Published, Queue

from .app_connection import AppConnection
from .config import RunConfig
from .publish_log import PublishLog


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
            self._log.undone(first, kept.id)
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
