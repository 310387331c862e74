"""Throttled with a limit: everything behind that shared limit rests."""

from pathlib import Path

from laneway import Queue, Throttled, Worker


def test_the_limit_rests_and_the_channel_goes_on(tmp_path: Path) -> None:
    with Queue(f"sqlite:///{tmp_path}/q.db") as queue:
        queue.install()
        worker = Worker(queue)
        seen: list[int] = []

        @worker.handler("call")
        def call(payload: int) -> None:
            seen.append(payload)
            if payload == 1:
                raise Throttled(60, limit="stripe")

        queue.publish(1, kind="call", channel="a", limits=["stripe"])
        worker.run(until_empty=True)
        queue.publish(2, kind="call", channel="a")
        queue.publish(3, kind="call", channel="b", limits=["stripe"])
        worker.run(until_empty=True)
        assert seen == [1, 2]
        limit = queue.limits["stripe"].get()
        assert limit.resting_until is not None and limit.waiting == 2
        assert not queue.channel("a").policy().paused
