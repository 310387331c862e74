"""Publishes messages of all kinds at random: ``python -m laneway.dev.chaos.producer``."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from laneway import LanewayError, NewMessage, Queue
from laneway.client.shared.flows import AddedNode
from laneway.errors import PublishRefused

from .child import begin, config_text, stop_on_sigterm
from .config import (
    ADAPTING,
    BOUNDED,
    BREAKING,
    BURST,
    CHANGING,
    DEBOUNCED,
    DELAYED,
    ENDLESS,
    FAILS,
    KEYED,
    LIMITED,
    MANUAL,
    ORDERED,
    PACE,
    PAUSABLE,
    PAUSABLE_KIND,
    POISON,
    PRIORITIZED,
    RATED,
    REPLACED,
    SHARED,
    SLOTS,
    SPREAD,
    UNLIMITED,
    WORK,
    RunConfig,
    added_names,
    channel,
)  # fmt: skip
from .publishing import PublishLog, TransactionalPublisher, TransactionPlan

HOUR = timedelta(hours=1)
NEVER = 1000  # tries that fail
KEYS = 6
REPLACING_KINDS = ("plain", "slow", "repeat", "fail")
"""Of messages that replace others, one for each key: a message of another kind is not replaced."""
POISONS = ("exit", "segfault", "hog")
FIRST_POISON = {"producer-1.1": "exit", "producer-2.1": "segfault"}
CONCURRENT = 4


class Producer:
    def __init__(self, config: RunConfig, queue: Queue) -> None:
        self._config = config
        self._queue = queue
        self._rng = config.rng
        self._log = PublishLog(config.ledger())
        self._count = 0
        self._transactions = TransactionalPublisher(config, queue, self._log, self._rng)
        self._threads = ThreadPoolExecutor(CONCURRENT)

    def act(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self._plain: 8, self._many: 4, self._ordered: 4, self._in_transaction: 4,
            self._keyed: 4, self._repeat_unknown: 2, self._delayed: 2, self._special: 6,
            self._poison: 1, self._prioritized: 1, self._over_backlog: 2, self._concurrent: 2,
            self._late_commit: 1, self._rated: 1, self._pausable: 4, self._far: 1,
            self._endless: 1, self._doomed: 2, self._flow: 2, self._shared: 1, self._burst: 1,
            self._controlled: 1, self._newest: 4, self._quiet: 3, self._changing: 3,
        }  # fmt: skip
        action = self._rng.choices(list(actions), list(actions.values()))[0]
        action()

    def begin(self) -> None:
        """One poison message comes early, so that a short run sees it become a dead letter, and one
        that runs until it is cancelled."""
        if self._config.name == "producer-1.1":
            self._publish([self._message(UNLIMITED[0], ENDLESS, queue=WORK)])
        if self._config.poison and self._config.name in FIRST_POISON:
            self._publish_poison(FIRST_POISON[self._config.name])

    def _plain(self) -> None:
        self._publish([self._message(self._rng.choice(UNLIMITED))])

    def _many(self) -> None:
        names = [*UNLIMITED, LIMITED, RATED, CHANGING, PAUSABLE]
        self._publish(
            [self._message(self._rng.choice(names)) for _ in range(self._rng.randint(2, 9))]
        )

    def _ordered(self) -> None:
        """To a channel of concurrency 1 whose order is checked; nothing else goes there. In one
        call or in calls close together, so that one claim may be the first to see them all."""
        queue = self._rng.choice((WORK, MANUAL))
        messages = [self._message(ORDERED, queue=queue) for _ in range(self._rng.randint(1, 3))]
        parts = [messages] if self._rng.random() < 0.5 else [[message] for message in messages]
        for part in parts:
            self._publish(part, ordered=True)

    def _late_commit(self) -> None:
        """To the same channel: one message that is committed late, and a younger one after it."""
        queue = self._rng.choice((WORK, MANUAL))
        older, younger = (self._message(ORDERED, queue=queue) for _ in range(2))
        pause = self._rng.uniform(0.25, 1.2)
        self._transactions.run(TransactionPlan(older, None, True, ordered=True, pause=pause))
        self._publish([younger], ordered=True)

    def _prioritized(self) -> None:
        """Several priorities in one call, to a channel of concurrency 1."""
        queue = self._rng.choice((WORK, MANUAL))
        self._publish(
            [
                self._message(
                    PRIORITIZED, queue=queue, priority=self._rng.choice((0, 0, 4, 9, 200))
                )
                for _ in range(5)
            ]
        )

    def _over_backlog(self) -> None:
        """More than the channel's backlog allows."""
        queue = self._rng.choice((WORK, MANUAL))
        self._publish([self._message(BOUNDED, queue=queue) for _ in range(self._rng.randint(1, 4))])

    def _rated(self) -> None:
        """More than the rate lets start at once."""
        queue = self._rng.choice((WORK, MANUAL))
        self._publish([self._message(RATED, queue=queue) for _ in range(2 * BURST)])

    def _shared(self) -> None:
        """Behind limits that several channels share, more than these let start at once."""
        limits = self._rng.choice(([SLOTS], [PACE], [SLOTS, PACE]))
        messages = [self._message(place, "slow") for place in (*SHARED, self._rng.choice(SHARED))]
        self._publish([replace(message, limits=limits) for message in messages])

    def _controlled(self) -> None:
        """Behind a limit that adapts, and one with a breaker, which some of them open."""
        adapting = [self._message(place, "slow") for place in SHARED]
        breaking = [self._message(place) for place in SHARED]
        if self._rng.random() < 0.3:
            breaking.append(self._message(self._rng.choice(SHARED), "fail"))
            breaking[-1].payload["fails"] = 1
        self._publish(
            [replace(message, limits=[ADAPTING]) for message in adapting]
            + [replace(message, limits=[BREAKING]) for message in breaking]
        )

    def _concurrent(self) -> None:
        """From threads, so that they are batched into one commit; each gets its own result."""
        messages = [self._message(self._rng.choice(UNLIMITED)) for _ in range(CONCURRENT)]
        list(self._threads.map(self._publish_one, messages))

    def _delayed(self) -> None:
        delay = timedelta(seconds=self._rng.uniform(0.2, 4))
        self._publish([self._message(DELAYED, delay=delay)])

    def _pausable(self) -> None:
        """Of a kind that is paused now and then, beside others in its channel."""
        place = self._rng.choice((*UNLIMITED[:2], PAUSABLE, PAUSABLE))
        kinds = (PAUSABLE_KIND, PAUSABLE_KIND, "plain")
        self._publish([self._message(place, kind) for kind in kinds])

    def _burst(self) -> None:
        """One kind in one channel, more than a claim takes of it at once."""
        queue = self._rng.choice((WORK, MANUAL))
        place = self._rng.choice((*UNLIMITED, PAUSABLE, LIMITED, LIMITED))
        kind = self._rng.choice(("plain", "slow"))
        self._publish([self._message(place, kind, queue=queue) for _ in range(12)])

    def _changing(self) -> None:
        """Where an operator changes the limit: so that some run when a new one is set."""
        queue = self._rng.choice((WORK, MANUAL))
        self._publish([self._message(CHANGING, queue=queue) for _ in range(5)])

    def _far(self) -> None:
        """Later than the run lasts: it starts only because somebody hurries it."""
        self._publish([self._message(DELAYED, delay=HOUR)])

    def _endless(self) -> None:
        """Rarely: it holds a place until it is cancelled."""
        if self._rng.random() < 0.3:
            self._publish([self._message(UNLIMITED[0], ENDLESS, queue=WORK)])

    def _doomed(self) -> None:
        """They fail whenever they are tried: work for bulk operations."""
        doomed = [self._message(FAILS, "fail", queue=WORK, max_attempts=1) for _ in range(4)]
        for message in doomed:
            message.payload["fails"] = NEVER
        self._publish(doomed)

    def _flow(self) -> None:
        """Messages that come after others. One of them adds to the flow while it runs, one may die
        and completes if it is redriven, one runs only if it dies."""
        plain = [self._message(self._rng.choice(UNLIMITED), queue=WORK) for _ in range(5)]
        spread = self._message(self._rng.choice(UNLIMITED), SPREAD, queue=WORK)
        fails = self._message(FAILS, "fail", queue=WORK, max_attempts=2)
        fails.payload |= {"fails": self._rng.randint(0, 3), "heals": 2}
        one, merged, both, sorry, last = plain
        after = [(merged, [one, spread]), (both, [one, fails])]
        messages = [one, spread, fails, merged, both, sorry, last]
        added = [
            replace(one, payload={"n": name}, keep_result=None)
            for name in added_names(spread.payload["n"])
        ]
        self._log.tried([*messages, *added], False)
        nodes: dict[int, AddedNode] = {}
        try:
            with self._queue.flow(f"{self._config.name}:{self._count}") as flow:
                for message in (one, spread, fails):
                    nodes[id(message)] = flow.add(message)
                for message, parents in after:
                    nodes[id(message)] = flow.add(message, after=[nodes[id(p)] for p in parents])
                nodes[id(sorry)] = flow.add(sorry, after=nodes[id(fails)], when="failed")
                ends = [nodes[id(node)] for node in (merged, both, sorry)]
                nodes[id(last)] = flow.add(last, after=ends, when="ended")
        except LanewayError as error:
            self._log.failed(messages, error)
            return
        after += [(sorry, [fails]), (last, [merged, both, sorry])]
        whens = {id(sorry): "failed", id(last): "ended"}
        parents_of = {id(message): parents for message, parents in after}
        self._log.flow(
            [
                (
                    *(nodes[id(one)].id, one.payload["n"], whens.get(id(one), "completed")),
                    [nodes[id(parent)].id for parent in parents_of.get(id(one), [])],
                )
                for one in messages
            ]
        )

    def _keyed(self) -> None:
        """A few keys, used again and again; some are kept after the message's end."""
        mark = self._rng.randrange(KEYS)
        if self._rng.random() < 0.5:
            self._publish([self._message(KEYED, queue=WORK, key=f"short-{mark}")])
        else:
            key = f"{self._config.name}-{mark}-{self._count // 20}"
            self._publish([self._message(KEYED, queue=WORK, key=key, key_window=HOUR)])

    def _newest(self) -> None:
        """Under keys that all producers use: what waits is replaced, behind what runs one waits."""
        queue, mark = self._rng.choice((WORK, MANUAL)), self._rng.randrange(len(REPLACING_KINDS))
        delay = timedelta(seconds=self._rng.choice((0, self._rng.uniform(0.2, 1))))
        for _ in range(self._rng.randint(1, 4)):
            count = self._rng.choice((1, 1, 1, 3))
            messages = [self._replacing(REPLACED, queue, mark, delay) for _ in range(count)]
            if self._rng.random() < 0.1:
                messages = [replace(message, on_duplicate="keep") for message in messages]
            # MariaDB's own isolation level is not the one that replacing needs.
            if self._config.engine != "mariadb" and self._rng.random() < 0.2:
                commits, pause = self._rng.random() < 0.5, self._rng.uniform(0, 0.2)
                self._transactions.run(TransactionPlan(messages[0], None, commits, pause=pause))
            else:
                self._publish(messages)
            time.sleep(self._rng.uniform(0, 0.1))

    def _quiet(self) -> None:
        """The same, and every publish moves the time at which it may start; some keys are never
        quiet, and start nevertheless."""
        queue, mark = self._rng.choice((WORK, MANUAL)), self._rng.randrange(len(REPLACING_KINDS))
        delay = timedelta(seconds=self._rng.uniform(0.4, 0.8))
        bound = delay * self._rng.choice((1.5, 10))
        for _ in range(self._rng.randint(2, 6)):
            message = self._replacing(DEBOUNCED, queue, mark, delay)
            self._publish([replace(message, on_duplicate="debounce", debounce_for=bound)])
            time.sleep(self._rng.uniform(0, 0.2))

    def _replacing(self, place: str, queue: str, mark: int, delay: timedelta) -> NewMessage:
        """A kind may fail often enough for a dead letter, which gives its key up."""
        kind, priority = REPLACING_KINDS[mark], self._rng.choice((0, 0, 5))
        message = self._message(
            place, kind, queue=queue, key=f"{place}-{queue}-{mark}", delay=delay,
            max_attempts=2 if kind == "fail" else 5, priority=priority,
        )  # fmt: skip
        if kind == "fail":
            message.payload["fails"] = self._rng.randint(0, 2)
        return replace(message, on_duplicate="replace")

    def _repeat_unknown(self) -> None:
        """After an unknown outcome: the same message with the same key."""
        if self._log.unknown:
            self._publish([self._log.unknown.pop(0)])

    def _special(self) -> None:
        kind = self._rng.choice(("repeat", "fail", "fail", "effect", "effect", "long"))
        queue = MANUAL if kind == "effect" and self._config.engine != "postgresql" else None
        place = FAILS if kind == "fail" else self._rng.choice(UNLIMITED)
        message = self._message(place, kind, queue=queue, max_attempts=3)
        if kind == "fail":
            message.payload["fails"] = self._rng.randint(1, 4)
        if kind == "effect":
            message.payload["fails"] = self._rng.choice((0, 0, 1))
        self._publish([message])

    def _poison(self) -> None:
        # Rarely: it stops a worker for seconds, and more would stop both for good.
        if not self._config.poison or self._rng.random() < 0.7:
            return
        self._publish_poison(self._rng.choice(POISONS))

    def _publish_poison(self, kind: str) -> None:
        self._publish([self._message(POISON, kind, queue=WORK, max_attempts=2)])

    def _message(
        self, place: str, kind: str = "plain", *, queue: str | None = None, key: str | None = None,
        key_window: timedelta | None = None, delay: timedelta | None = None, max_attempts: int = 5,
        priority: int = 0,
    ) -> NewMessage:  # fmt: skip
        self._count += 1
        target = queue or self._rng.choice((WORK, MANUAL))
        if kind == "plain" and place in (LIMITED, CHANGING, BOUNDED):
            kind = "slow"
        if self._config.by_kind and place == ORDERED and self._count % 2:
            kind = "slow"
        return NewMessage(
            {"n": f"{self._config.name}:{self._count}"},
            channel=channel(place, target), queue=target, kind=kind, key=key, delay=delay,
            key_window=key_window, max_attempts=max_attempts, priority=priority,
            keep_result=None if self._count % 3 else HOUR,
        )  # fmt: skip

    def _publish(self, messages: list[NewMessage], ordered: bool = False) -> None:
        self._log.tried(messages, ordered)
        try:
            results = self._queue.publish_many(messages)
        except PublishRefused as error:
            results = list(error.results)
        except LanewayError as error:
            self._log.failed(messages, error)
            return
        self._log.results(messages, results)

    def _publish_one(self, message: NewMessage) -> None:
        self._log.tried([message], False)
        try:
            result = self._queue.publish(
                message.payload, channel=str(message.channel), queue=message.queue,
                kind=message.kind,
                max_attempts=message.max_attempts, keep_result=message.keep_result,
            )  # fmt: skip
        except LanewayError as error:
            self._log.failed([message], error)
        else:
            self._log.results([message], [result])

    def _in_transaction(self) -> None:
        """At random, one message is undone by a savepoint and one by a rollback. Its key is then
        free again."""
        first = self._message(self._rng.choice(UNLIMITED))
        if self._rng.random() < 0.5:
            key = f"undone-{self._config.name}-{self._count // 40}"
            first = self._message(KEYED, queue=WORK, key=key, key_window=HOUR)
        undone = self._message(self._rng.choice(UNLIMITED))
        commits, saves = self._rng.random() < 0.6, self._rng.random() < 0.5
        self._transactions.run(TransactionPlan(first, undone if saves else None, commits))


def main(text: str) -> None:
    config = begin(text)
    stopping = stop_on_sigterm()
    pace = random.Random(f"{config.seed}/{config.name}/pace")
    with config.queue() as queue:
        producer = Producer(config, queue)
        producer.begin()
        while not stopping.wait(pace.uniform(0.0, 0.08)):
            producer.act()


if __name__ == "__main__":
    main(config_text())
