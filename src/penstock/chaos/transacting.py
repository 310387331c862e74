"""Publishing as part of an application's transaction, and undoing it."""

import random
import time
from typing import NamedTuple

from penstock import NewMessage, Published, Queue

from .notes import Notes
from .outside import Outside
from .stage import Stage


class Wish(NamedTuple):
    """A transaction: what is published in it, what by a savepoint of it that is undone, and for how
    long it stays open after the first."""

    first: NewMessage
    undone: NewMessage | None
    commits: bool
    ordered: bool = False
    pause: float = 0.0


class Transactions:
    def __init__(self, stage: Stage, queue: Queue, notes: Notes, dice: random.Random) -> None:
        self._stage = stage
        self._dice = dice
        self._queue = queue
        self._notes = notes
        self._outside: Outside | None = None

    def do(self, wish: Wish) -> None:
        first, undone = wish.first, wish.undone
        self._notes.tried([first], wish.ordered)
        self._notes.tried([undone] if undone else [], False)
        try:
            self._outside = self._outside or Outside(self._stage)
            kept, gone = self._say(self._outside, wish)
        except Exception as error:
            self._notes.failed([first], error)
            if undone:  # whatever became of the first, this one was undone or never committed
                self._notes.undone(undone, None)
            self._drop_connection()
            return
        if wish.commits:
            self._notes.answers([first], [kept])
        else:
            self._notes.undone(first, kept.id)
        if undone and gone:
            self._notes.undone(undone, gone.id)

    def _drop_connection(self) -> None:
        if self._outside is not None:
            self._outside.close()
        self._outside = None

    def _say(self, outside: Outside, wish: Wish) -> tuple[Published, Published | None]:
        gone = None
        outside.begin()
        if self._dice.random() < 0.1:
            self._wait(0.5)  # whatever the transaction's own time is, it is past
        kept = self._queue.publish_many([wish.first], connection=outside.connection)[0]
        self._wait(wish.pause)
        if wish.undone is not None:
            outside.say("savepoint regret")
            gone = self._queue.publish_many([wish.undone], connection=outside.connection)[0]
            outside.say("rollback to savepoint regret")
        outside.say("commit" if wish.commits else "rollback")
        return kept, gone

    def _wait(self, seconds: float) -> None:
        if self._stage.engine != "sqlite":  # where nobody else could write meanwhile
            time.sleep(seconds)
