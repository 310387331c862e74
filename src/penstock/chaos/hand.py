"""A consumer that claims and settles by hand, in batches and one by one, late and twice."""

import time
from datetime import timedelta
from itertools import groupby

from penstock import Message, PenstockError, Queue
from penstock.errors import ConnectionUnavailable, LeaseLost

from .child import begin, handed_over, stop_on_sigterm
from .laborer import REPEATS, note_start, real_time
from .outside import Outside
from .stage import HAND, LEASE, LINE, RANKED, Stage

TENTH = timedelta(milliseconds=100)
SOON = timedelta(milliseconds=200)
LATE = 9  # of so many messages one


class Hand:
    def __init__(self, stage: Stage, queue: Queue) -> None:
        self._stage = stage
        self._queue = queue
        self._dice = stage.dice
        self._ledger = stage.ledger()
        self._outside: Outside | None = None
        self._pocket: list[tuple[float, Message]] = []

    def act(self) -> float:
        """One claim and what follows; answers how long to wait before the next."""
        self._empty_pocket()
        try:
            claim = self._queue.claim(self._dice.randint(1, 8))
        except PenstockError as error:
            self._ledger.note("claim_failed", error=str(error))
            return 0.3
        # What it begins and what it never begins: both happen.
        begun = [m for m in claim if self._dice.random() < 0.95]
        for message in begun:
            note_start(self._ledger, message)
        self._settle([m for m in claim if m not in begun], "give_back")
        for verb, group in groupby(sorted(begun, key=self._verb), key=self._verb):
            self._treat(verb, list(group))
        return 0.0 if claim else 0.1

    def _verb(self, message: Message) -> str:
        """Settled by what the message is, and by dice that only it decides."""
        if message.kind in ("fail", "repeat", "effect"):
            return message.kind
        if message.id % LATE == 0 and not message.channel.startswith((LINE, RANKED)):
            return "late" if message.attempt == 1 else "extend"
        number = (message.id * 7 + message.fence) % 20
        return {1: "extend", 2: "single", 3: "give_up", 4: "single"}.get(number, "batch")

    def _treat(self, verb: str, messages: list[Message]) -> None:
        if verb == "batch":
            self._work(messages)
            self._settle(messages, "complete")
            return
        for message in messages:
            getattr(self, f"_{verb}")(message)

    def _work(self, messages: list[Message]) -> None:
        slow = any(message.kind == "slow" for message in messages)
        time.sleep(self._dice.uniform(0.3, 0.6) if slow else self._dice.uniform(0, 0.03))

    def _single(self, message: Message) -> None:
        self._work([message])
        self._settle([message], "complete")

    def _give_up(self, message: Message) -> None:
        if message.channel.startswith("line"):
            return self._single(message)
        return self._settle([message], "fail" if message.attempt == 1 else "complete")

    def _late(self, message: Message) -> None:
        """Kept past its lease, and settled while the next holder has it: that must be refused."""
        until = time.monotonic() + LEASE.total_seconds() + self._dice.uniform(0.8, 3)
        self._ledger.note(
            "fault", kind="late", target=self._stage.name, id=message.id, span=LEASE.total_seconds()
        )
        self._pocket.append((until, message))

    def _empty_pocket(self) -> None:
        now = time.monotonic()
        ripe = [message for until, message in self._pocket if until <= now]
        self._pocket = [item for item in self._pocket if item[0] > now]
        verb = self._dice.choice(("complete", "complete", "defer", "fail", "give_back", "extend"))
        if verb != "extend":
            self._settle(ripe, verb)
            return
        for message in ripe:
            if self._prolong(message, LEASE):
                self._settle([message], "complete")

    def _extend(self, message: Message) -> None:
        """Twice, the second time for less: an extension never shortens. Kept for a while, so that
        whoever had it before is late while we have it."""
        if self._prolong(message, LEASE * 2):
            self._prolong(message, LEASE / 4)
        self._pocket.append((time.monotonic() + LEASE.total_seconds() * 0.8, message))

    def _prolong(self, message: Message, length: timedelta) -> bool:
        tried = real_time()
        try:
            until = message.extend(length)
        except (PenstockError, LeaseLost):
            return False
        self._ledger.note(
            "extended", id=message.id, fence=message.fence, until=until.timestamp(), tried=tried
        )
        return True

    def _repeat(self, message: Message) -> None:
        done = 0 if message.state is None else message.state_json()["done"]
        if done >= REPEATS:
            self._settle([message], "complete")
        else:
            self._settle([message], "defer", delay=TENTH, state={"done": done + 1})

    def _fail(self, message: Message) -> None:
        if message.failures < message.json()["fails"]:
            self._settle([message], "defer", delay=SOON, reason="not yet")
        else:
            self._settle([message], "complete")

    def _effect(self, message: Message) -> None:
        """The effect and the completion in one transaction of our own, which may be undone."""
        try:
            self._outside = self._outside or Outside(self._stage)
            self._outside.begin()
            self._outside.add_effect(message.json()["n"])
            if self._stage.engine != "sqlite" and self._dice.random() < 0.2:
                time.sleep(0.5)  # whatever the transaction's own time is, it is past
            self._ledger.note("settle_tried", id=message.id, fence=message.fence, verb="complete")
            if message.failures < message.json()["fails"]:
                message.complete(connection=self._outside.connection)
                self._outside.say("rollback")
                return self._settle([message], "defer", delay=SOON, reason="not yet")
            message.complete(connection=self._outside.connection)
            self._outside.say("commit")
        except LeaseLost:
            self._note(message, "complete", "lost")
            self._drop_connection()
        except Exception as error:
            self._note(message, "complete", "unknown", error=str(error))
            self._drop_connection()
        else:
            self._note(message, "complete", "accepted")

    def finish(self) -> None:
        """A stop in good order gives back what it holds."""
        self._settle([message for _, message in self._pocket], "give_back")

    def _drop_connection(self) -> None:
        if self._outside is not None:
            self._outside.close()
        self._outside = None

    def _settle(self, messages: list[Message], verb: str, **options: object) -> None:
        if not messages:
            return
        delay = options.get("delay")
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else 0.0
        state = options.get("state")
        saves = state["done"] if isinstance(state, dict) else None
        for message in messages:
            self._ledger.note(
                "settle_tried", id=message.id, fence=message.fence, verb=verb, delay=seconds,
                saves=saves,
            )  # fmt: skip
        try:
            answers = getattr(self._queue, verb)(messages, **options)
        except PenstockError as error:
            unknown = isinstance(error, ConnectionUnavailable)
            for message in messages:
                self._note(message, verb, "unknown" if unknown else "failed")
            # Tried again later: by then it is done, or lost, or still ours.
            self._pocket += [(time.monotonic() + 0.5, message) for message in messages]
            return
        by_lease = {(answer.id, answer.fence): answer for answer in answers}
        for message in messages:
            lost = by_lease[message.id, message.fence].lost
            self._note(message, verb, "lost" if lost else "accepted")

    def _note(self, message: Message, verb: str, answer: str, **fields: str) -> None:
        self._ledger.note(
            f"settle_{answer}", id=message.id, fence=message.fence, verb=verb, **fields
        )


def main(text: str) -> None:
    stage = begin(text)
    stopping = stop_on_sigterm()
    with stage.queue(HAND) as queue:
        hand = Hand(stage, queue)
        while not stopping.is_set():
            time.sleep(hand.act())
        hand.finish()


if __name__ == "__main__":
    main(handed_over())
