"""Publishes by its dice: ``python -m penstock.chaos.producer``."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from penstock import NewMessage, PenstockError, Published, Queue
from penstock.errors import ConnectionUnavailable, PublishRefused

from .child import begin, handed_over, stop_on_sigterm
from .outside import Outside
from .stage import (
    FAILS,
    FREE,
    FULL,
    GATE,
    HAND,
    KEYED,
    LATER,
    LINE,
    POISON,
    RANKED,
    RATED,
    SWING,
    TIGHT,
    WORK,
    Stage,
    channel,
)  # fmt: skip

HOUR = timedelta(hours=1)
KEYS = 6
TOGETHER = 4


class Producer:
    def __init__(self, stage: Stage, queue: Queue) -> None:
        self._stage = stage
        self._queue = queue
        self._dice = stage.dice
        self._ledger = stage.ledger()
        self._outside: Outside | None = None
        self._count = 0
        self._unknown: list[NewMessage] = []
        self._threads = ThreadPoolExecutor(TOGETHER)

    def act(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self._plain: 8, self._many: 4, self._in_line: 4, self._in_transaction: 4,
            self._keyed: 4, self._again: 2, self._later: 2, self._special: 6, self._poison: 1,
            self._ranked: 1, self._crowded: 2, self._together: 2,
        }  # fmt: skip
        action = self._dice.choices(list(actions), list(actions.values()))[0]
        action()

    def _plain(self) -> None:
        self._publish([self._message(self._dice.choice(FREE))])

    def _many(self) -> None:
        names = [*FREE, TIGHT, RATED, SWING, GATE]
        self._publish(
            [self._message(self._dice.choice(names)) for _ in range(self._dice.randint(2, 9))]
        )

    def _in_line(self) -> None:
        """To a channel of one at a time, whose order is checked; nothing else goes there."""
        queue = self._dice.choice((WORK, HAND))
        messages = [self._message(LINE, queue=queue) for _ in range(self._dice.randint(1, 3))]
        self._publish(messages, ordered=True)

    def _ranked(self) -> None:
        """Several priorities in one publish, to a channel of one at a time."""
        queue = self._dice.choice((WORK, HAND))
        self._publish(
            [
                self._message(RANKED, queue=queue, priority=self._dice.choice((0, 0, 4, 9)))
                for _ in range(5)
            ]
        )

    def _crowded(self) -> None:
        """More than the channel takes."""
        queue = self._dice.choice((WORK, HAND))
        self._publish([self._message(FULL, queue=queue) for _ in range(self._dice.randint(1, 4))])

    def _together(self) -> None:
        """From threads, so that they share a round trip; each is answered for itself."""
        messages = [self._message(self._dice.choice(FREE)) for _ in range(TOGETHER)]
        list(self._threads.map(self._publish_one, messages))

    def _later(self) -> None:
        delay = timedelta(seconds=self._dice.uniform(0.2, 4))
        self._publish([self._message(LATER, delay=delay)])

    def _keyed(self) -> None:
        """Few keys that come again and again; some are kept after the end."""
        mark = self._dice.randrange(KEYS)
        if self._dice.random() < 0.5:
            self._publish([self._message(KEYED, queue=WORK, key=f"short-{mark}")])
        else:
            key = f"{self._stage.name}-{mark}-{self._count // 20}"
            self._publish([self._message(KEYED, queue=WORK, key=key, key_window=HOUR)])

    def _again(self) -> None:
        """After an unknown outcome: the same message with the same key."""
        if self._unknown:
            self._publish([self._unknown.pop(0)])

    def _special(self) -> None:
        kind = self._dice.choice(("repeat", "fail", "fail", "effect", "effect", "long"))
        queue = HAND if kind == "effect" and self._stage.engine != "postgresql" else None
        place = FAILS if kind == "fail" else self._dice.choice(FREE)
        message = self._message(place, kind, queue=queue, max_attempts=3)
        if kind == "fail":
            message.payload["fails"] = self._dice.randint(1, 4)
        if kind == "effect":
            message.payload["fails"] = self._dice.choice((0, 0, 1))
        self._publish([message])

    def _poison(self) -> None:
        # Rarely: it takes a worker away for seconds, and more would take both away for good.
        if not self._stage.poison or self._dice.random() < 0.7:
            return
        kind = self._dice.choice(("exit", "segfault", "hog"))
        self._publish([self._message(POISON, kind, queue=WORK, max_attempts=2)])

    def _message(
        self, place: str, kind: str = "plain", *, queue: str | None = None, key: str | None = None,
        key_window: timedelta | None = None, delay: timedelta | None = None, max_attempts: int = 5,
        priority: int = 0,
    ) -> NewMessage:  # fmt: skip
        self._count += 1
        target = queue or self._dice.choice((WORK, HAND))
        if kind == "plain" and place in (TIGHT, SWING, FULL):
            kind = "slow"
        return NewMessage(
            {"n": f"{self._stage.name}:{self._count}"},
            channel=channel(place, target), queue=target, kind=kind, key=key, delay=delay,
            key_window=key_window, max_attempts=max_attempts, priority=priority,
        )  # fmt: skip

    def _publish(self, messages: list[NewMessage], ordered: bool = False) -> None:
        self._note_tried(messages, ordered)
        try:
            answers = self._queue.publish_many(messages)
        except PublishRefused as error:
            answers = list(error.results)
        except PenstockError as error:
            self._note_failed(messages, error)
            return
        self._note_answers(messages, answers)

    def _publish_one(self, message: NewMessage) -> None:
        self._note_tried([message], False)
        try:
            answer = self._queue.publish(
                message.payload, channel=str(message.channel), queue=message.queue,
                kind=message.kind,
                max_attempts=message.max_attempts,
            )  # fmt: skip
        except PenstockError as error:
            self._note_failed([message], error)
        else:
            self._note_answers([message], [answer])

    def _in_transaction(self) -> None:
        """One message undone by a savepoint, one by the transaction's end, as the dice say. A key
        is free again if it was undone."""
        first = self._message(self._dice.choice(FREE))
        if self._dice.random() < 0.5:
            key = f"undone-{self._stage.name}-{self._count // 40}"
            first = self._message(KEYED, queue=WORK, key=key, key_window=HOUR)
        undone = self._message(self._dice.choice(FREE))
        commits, saves = self._dice.random() < 0.6, self._dice.random() < 0.5
        self._note_tried([first, *([undone] if saves else [])], False)
        try:
            self._outside = self._outside or Outside(self._stage)
            kept, gone = self._transact(self._outside, first, undone if saves else None, commits)
        except Exception as error:
            self._note_failed([first], error)
            if saves:  # whatever became of the first, this one was undone or never committed
                self._note_undone(undone, None)
            self._drop_connection()
            return
        if commits:
            self._note_answers([first], [kept])
        else:
            self._note_undone(first, kept.id)
        if gone is not None:
            self._note_undone(undone, gone.id)

    def _drop_connection(self) -> None:
        if self._outside is not None:
            self._outside.close()
        self._outside = None

    def _transact(
        self, outside: Outside, first: NewMessage, undone: NewMessage | None, commits: bool
    ) -> tuple[Published, Published | None]:
        gone = None
        outside.begin()
        if self._stage.engine != "sqlite" and self._dice.random() < 0.1:
            time.sleep(0.5)  # whatever the transaction's own time is, it is past
        kept = self._queue.publish_many([first], connection=outside.connection)[0]
        if undone is not None:
            outside.say("savepoint regret")
            gone = self._queue.publish_many([undone], connection=outside.connection)[0]
            outside.say("rollback to savepoint regret")
        outside.say("commit" if commits else "rollback")
        return kept, gone

    def _note_tried(self, messages: list[NewMessage], ordered: bool) -> None:
        for message in messages:
            self._ledger.note(
                "publish_tried", n=message.payload["n"], channel=message.channel, kind=message.kind,
                key=message.key, window=message.key_window is not None, ordered=ordered,
                max_attempts=message.max_attempts, priority=message.priority,
                delay=0.0 if message.delay is None else message.delay.total_seconds(),
            )  # fmt: skip

    def _note_answers(self, messages: list[NewMessage], answers: list[Published]) -> None:
        for message, answer in zip(messages, answers, strict=True):
            n = message.payload["n"]
            if answer.refused:
                self._ledger.note("publish_refused", n=n, status=answer.status)
            else:
                self._ledger.note("publish_acknowledged", n=n, id=answer.id, status=answer.status)

    def _note_undone(self, message: NewMessage, id: int | None) -> None:
        self._ledger.note("publish_rolled_back", n=message.payload["n"], id=id)

    def _note_failed(self, messages: list[NewMessage], error: Exception) -> None:
        unknown = isinstance(error, ConnectionUnavailable) or not isinstance(error, PenstockError)
        for message in messages:
            if unknown:
                self._ledger.note("publish_unknown", n=message.payload["n"], error=str(error))
            else:
                self._ledger.note("publish_rolled_back", n=message.payload["n"], id=None)
            if unknown and message.key_window is not None:
                self._unknown.append(message)


def main(text: str) -> None:
    stage = begin(text)
    stopping = stop_on_sigterm()
    pace = random.Random(f"{stage.seed}/{stage.name}/pace")
    with stage.queue() as queue:
        producer = Producer(stage, queue)
        while not stopping.wait(pace.uniform(0.0, 0.08)):
            producer.act()


if __name__ == "__main__":
    main(handed_over())
