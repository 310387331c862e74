"""Publishes by its dice: ``python -m penstock.chaos.producer``."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from penstock import NewMessage, PenstockError, Queue
from penstock.errors import PublishRefused

from .child import begin, handed_over, stop_on_sigterm
from .notes import Notes
from .stage import (
    BURST,
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
from .transacting import Transactions, Wish

HOUR = timedelta(hours=1)
KEYS = 6
POISONS = ("exit", "segfault", "hog")
FIRST_POISON = {"producer-1.1": "exit", "producer-2.1": "segfault"}
TOGETHER = 4


class Producer:
    def __init__(self, stage: Stage, queue: Queue) -> None:
        self._stage = stage
        self._queue = queue
        self._dice = stage.dice
        self._notes = Notes(stage.ledger())
        self._count = 0
        self._transactions = Transactions(stage, queue, self._notes, self._dice)
        self._threads = ThreadPoolExecutor(TOGETHER)

    def act(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self._plain: 8, self._many: 4, self._in_line: 4, self._in_transaction: 4,
            self._keyed: 4, self._again: 2, self._later: 2, self._special: 6, self._poison: 1,
            self._ranked: 1, self._crowded: 2, self._together: 2, self._late_elder: 1,
            self._rated: 1,
        }  # fmt: skip
        action = self._dice.choices(list(actions), list(actions.values()))[0]
        action()

    def begin(self) -> None:
        """One poison comes early, so that a short run sees it die."""
        if self._stage.poison and self._stage.name in FIRST_POISON:
            self._publish_poison(FIRST_POISON[self._stage.name])

    def _plain(self) -> None:
        self._publish([self._message(self._dice.choice(FREE))])

    def _many(self) -> None:
        names = [*FREE, TIGHT, RATED, SWING, GATE]
        self._publish(
            [self._message(self._dice.choice(names)) for _ in range(self._dice.randint(2, 9))]
        )

    def _in_line(self) -> None:
        """To a channel of one at a time, whose order is checked; nothing else goes there. Together,
        or one close behind the other, so that both may be news to the same claim."""
        queue = self._dice.choice((WORK, HAND))
        messages = [self._message(LINE, queue=queue) for _ in range(self._dice.randint(1, 3))]
        parts = [messages] if self._dice.random() < 0.5 else [[message] for message in messages]
        for part in parts:
            self._publish(part, ordered=True)

    def _late_elder(self) -> None:
        """To the same channel: one whose commit comes late, and a younger one close behind it."""
        queue = self._dice.choice((WORK, HAND))
        elder, younger = (self._message(LINE, queue=queue) for _ in range(2))
        pause = self._dice.uniform(0.25, 0.6)
        self._transactions.do(Wish(elder, None, True, ordered=True, pause=pause))
        self._publish([younger], ordered=True)

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

    def _rated(self) -> None:
        """More than may start at once."""
        queue = self._dice.choice((WORK, HAND))
        self._publish([self._message(RATED, queue=queue) for _ in range(2 * BURST)])

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
        if self._notes.unsure:
            self._publish([self._notes.unsure.pop(0)])

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
        self._publish_poison(self._dice.choice(POISONS))

    def _publish_poison(self, kind: str) -> None:
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
        self._notes.tried(messages, ordered)
        try:
            answers = self._queue.publish_many(messages)
        except PublishRefused as error:
            answers = list(error.results)
        except PenstockError as error:
            self._notes.failed(messages, error)
            return
        self._notes.answers(messages, answers)

    def _publish_one(self, message: NewMessage) -> None:
        self._notes.tried([message], False)
        try:
            answer = self._queue.publish(
                message.payload, channel=str(message.channel), queue=message.queue,
                kind=message.kind,
                max_attempts=message.max_attempts,
            )  # fmt: skip
        except PenstockError as error:
            self._notes.failed([message], error)
        else:
            self._notes.answers([message], [answer])

    def _in_transaction(self) -> None:
        """One message undone by a savepoint, one by the transaction's end, as the dice say. A key
        is free again if it was undone."""
        first = self._message(self._dice.choice(FREE))
        if self._dice.random() < 0.5:
            key = f"undone-{self._stage.name}-{self._count // 40}"
            first = self._message(KEYED, queue=WORK, key=key, key_window=HOUR)
        undone = self._message(self._dice.choice(FREE))
        commits, saves = self._dice.random() < 0.6, self._dice.random() < 0.5
        self._transactions.do(Wish(first, undone if saves else None, commits))


def main(text: str) -> None:
    stage = begin(text)
    stopping = stop_on_sigterm()
    pace = random.Random(f"{stage.seed}/{stage.name}/pace")
    with stage.queue() as queue:
        producer = Producer(stage, queue)
        producer.begin()
        while not stopping.wait(pace.uniform(0.0, 0.08)):
            producer.act()


if __name__ == "__main__":
    main(handed_over())
