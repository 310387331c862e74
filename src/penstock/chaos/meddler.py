"""An operator who changes limits, pauses, cancels and redrives while everything runs."""

from collections.abc import Callable

from penstock import PenstockError, Policy, Queue

from .child import begin, handed_over, stop_on_sigterm
from .stage import FAILS, GATE, HAND, LINE, RANKED, SWING, WORK, Stage, channel

BACKLOG = 60


class Meddler:
    def __init__(self, stage: Stage, queue: Queue) -> None:
        self._queue = queue
        self._dice = stage.dice
        self._ledger = stage.ledger()
        self._policies = 0

    def act(self) -> None:
        actions: dict[Callable[[str], None], int] = {
            self._limit: 4, self._pause: 2, self._resume: 3, self._cancel: 3, self._redrive: 1,
        }  # fmt: skip
        action = self._dice.choices(list(actions), list(actions.values()))[0]
        try:
            action(self._dice.choice((WORK, HAND)))
        except PenstockError as error:
            self._ledger.note("operation_failed", error=str(error))

    def _limit(self, queue: str) -> None:
        name, limit = channel(SWING, queue), self._dice.choice((1, 2, 3, 4, None))
        self._policies += 1
        number = self._policies
        self._ledger.note("policy_tried", number=number, channel=name, concurrency=limit)
        policy = Policy(concurrency=limit, backlog=self._dice.choice((BACKLOG, None)))
        self._queue.set_policies({name: policy}, queue=queue)
        self._ledger.note("policy_set", number=number, channel=name)

    def _pause(self, queue: str) -> None:
        name = channel(GATE, queue)
        self._queue.channel(name, queue=queue).pause()
        self._ledger.note("paused", channel=name)

    def _resume(self, queue: str) -> None:
        resume(self._queue, self._ledger.note, queue)

    def _cancel(self, queue: str) -> None:
        """Some that wait and some that are leased."""
        found = [*self._queue.messages(queue=queue, limit=200)]
        ids = [
            m.id
            for m in self._dice.sample(found, min(4, len(found)))
            if not m.channel.startswith((LINE, RANKED))
        ]
        self._ledger.note("cancel_tried", ids=ids)
        for answer in self._queue.cancel(ids):
            self._ledger.note("cancel_answered", id=answer.id, status=answer.status)

    def _redrive(self, queue: str) -> None:
        name = channel(FAILS, queue)
        count = self._queue.dead_letters.redrive(queue=queue, channel=name)
        self._ledger.note("redriven", channel=name, count=count)


def resume(queue: Queue, note: Callable[..., None], name: str) -> None:
    place = channel(GATE, name)
    note("resume_tried", channel=place)
    queue.channel(place, queue=name).resume()
    note("resumed", channel=place)


def main(text: str) -> None:
    stage = begin(text)
    stopping = stop_on_sigterm()
    with stage.queue() as queue:
        meddler = Meddler(stage, queue)
        while not stopping.wait(stage.dice.uniform(0.1, 0.5)):
            meddler.act()


if __name__ == "__main__":
    main(handed_over())
