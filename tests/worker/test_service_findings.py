"""diagnose() says which queues and kinds nobody serves, which stall, and which workers vanished."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from laneway import AsyncQueue, NewMessage, Queue, Worker
from laneway.inspection import Finding
from laneway.operations import WorkerInfo
from laneway.worker.execute import unhandled
from tests.client.worlds import run_async
from tests.worker.databases import database_url
from tests.worker.test_registry import SetClock

__all__ = ["database_url"]

_EPOCH = datetime.fromtimestamp(0, UTC)


def _found(queue: Queue, check: str) -> Finding:
    (finding,) = (f for f in queue.diagnose() if f.check == check)
    return finding


def _seen(queue: Queue, kinds: tuple[str, ...], used: int = 0) -> None:
    info = WorkerInfo(
        "w", "web-1", 42, "1", ("default",), kinds, 5, used, _EPOCH, _EPOCH, name="web-1:42"
    )
    queue.database.run(queue.database.engine.workers.worker_seen(info))


def test_who_serves_what(database_url: str) -> None:
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        for check in ("queues without workers", "kinds without handlers", "stalled queues"):
            assert _found(queue, check).level == "ok"
        queue.publish_many([NewMessage(n, kind="mail", channel=f"c{n}") for n in range(3)])
        assert _found(queue, "queues without workers").level == "ok", "it just came"
        clock.now += timedelta(minutes=2)
        unserved = _found(queue, "queues without workers")
        assert unserved.level == "warn" and "default (for 2 min)" in unserved.message
        _seen(queue, ("order",))
        assert "default" not in _found(queue, "queues without workers").message
        unhandled = _found(queue, "kinds without handlers")
        assert unhandled.level == "warn" and "default/mail" in unhandled.message
        _seen(queue, ("mail", "order"))
        clock.now += timedelta(seconds=1)
        assert _found(queue, "stalled queues").level == "ok", "not for long"


def test_a_kind_without_a_handler_is_named_after_claims_have_passed_it(database_url: str) -> None:
    """Also behind much else of its channel, and of channels that come before its own."""
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        calls = [NewMessage(n, kind="call", channel=f"c{n % 15}") for n in range(400)]
        mails = [NewMessage(0, kind="mail", channel="c7"), NewMessage(0, kind="fax", channel="f")]
        queue.publish_many([*calls, *mails])
        for _ in range(8):
            queue.complete(queue.claim(10, kinds=["call"]))
            clock.now += timedelta(seconds=20)
        _seen(queue, ("call",))
        unhandled = _found(queue, "kinds without handlers")
        assert "default/mail" in unhandled.message and "default/fax" in unhandled.message
        assert "call" not in unhandled.message
        queue.complete(queue.claim(10, kinds=["mail"]))
        queue.pause(kind="fax")
        assert _found(queue, "kinds without handlers").level == "ok"


def test_a_stalled_queue_and_a_vanished_worker(database_url: str) -> None:
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        queue.publish_many([NewMessage(n, kind="mail", channel=f"c{n}") for n in range(3)])
        clock.now += timedelta(minutes=6)
        _seen(queue, (), used=5)
        assert _found(queue, "stalled queues").level == "ok", "its slots are all in use"
        _seen(queue, ())
        assert _found(queue, "kinds without handlers").level == "ok", "it handles every kind"
        stalled = _found(queue, "stalled queues")
        assert stalled.level == "warn" and "default (for 6 min)" in stalled.message
        (message,) = queue.claim(1)
        assert _found(queue, "stalled queues").level == "ok", "something was claimed"
        message.complete()
        assert _found(queue, "vanished workers").level == "ok"
        clock.now += timedelta(seconds=45)
        vanished = _found(queue, "vanished workers")
        assert vanished.level == "warn" and "web-1, pid 42 (45 s ago)" in vanished.message
        clock.now += timedelta(hours=1)
        assert _found(queue, "vanished workers").level == "ok", "that was long ago"


def test_a_queue_is_unserved_soon_after_its_worker_stopped(database_url: str) -> None:
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        queue.publish_many([NewMessage(n, kind="mail", channel=f"c{n}") for n in range(3)])
        next(iter(queue.claim(1))).complete()
        clock.now += timedelta(seconds=70)
        for _ in range(3):  # MariaDB counts what may not be committed yet a call later
            queue.upkeep()
        assert _found(queue, "queues without workers").level == "ok", "it started something"
        clock.now += timedelta(minutes=2)
        assert _found(queue, "queues without workers").level == "warn"


def test_a_paused_queue_is_not_stalled(database_url: str) -> None:
    with Queue(database_url) as real:
        real.install()
        clock = SetClock(real.clock())
    with Queue(database_url, clock=clock, upkeep_every=None) as queue:
        queue.publish(1, kind="mail")
        queue.pause()
        clock.now += timedelta(minutes=6)
        for check in ("queues without workers", "stalled queues"):
            assert _found(queue, check).level == "ok"


@run_async
async def test_an_unhandled_kind_is_kept_while_somebody_alive_handles_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unhandled, "_ASK_EVERY", 0.0)
    async with AsyncQueue(database_url) as queue:
        await queue.install()
        engine, run = queue.database.engine, queue.database.run
        monkeypatch.setattr(type(engine), "lacks", {"claims by kind": "as of somebody else"})
        other = WorkerInfo(
            "w", "web-1", 42, "1", ("default",), ("mail",), 5, 0, _EPOCH, _EPOCH, name="other"
        )
        await run(engine.workers.worker_seen(other))
        worker = Worker(queue, unhandled_delay=0.05, unhandled_timeout=0)
        worker.handler("order")(lambda payload: None)
        published = await queue.publish(1, kind="mail")
        serving = asyncio.create_task(worker.serve())

        async def outcomes() -> set[str]:
            return {entry.outcome for entry in await queue.history(published.id or 0)}

        async with asyncio.timeout(20):
            while len(await queue.history(published.id or 0)) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert await outcomes() == {"given_back"}
            await run(engine.workers.worker_gone("w"))
            while "failed" not in await outcomes():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        worker.stop()
        await serving
        (letter,) = await queue.dead_letters.list()
        assert letter.reason == "no_handler"
