"""One worker, several databases: two PostgreSQL servers, one of them ours to kill, and SQLite."""

import asyncio
import gc
import json
import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import INJECTED, AsyncMessage, AsyncQueue, NewMessage, Queue, Worker
from laneway.client import Shards
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import InvalidName, InvalidOption
from laneway.worker.run import fleet
from laneway.worker.run.fleet import SharedSlots
from tests.client.worlds import run_async
from tests.conftest import SETTINGS
from tests.frozen import frozen
from tests.place import Place
from tests.stores import Databases
from tests.worker.test_telemetry import get
from tests.worker.test_worker import until


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """A stop leaves tasks behind that wait for a silent server."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def mortal() -> Iterator[EmbeddedPostgres]:
    """A server that may be frozen and killed."""
    with EmbeddedPostgres(version=18, settings=SETTINGS | {"fsync": True}) as running:
        yield running


@asynccontextmanager
async def three(
    place: Place, mortal: EmbeddedPostgres, folder: Path, name: str
) -> AsyncIterator[dict[str, AsyncQueue]]:
    urls = {
        "eu-1": place.url,
        "eu-2": mortal.create_database(name),
        "local": f"sqlite:///{folder}/{name}.db",
    }
    async with AsyncExitStack() as stack:
        found = {}
        for name, url in urls.items():
            schema = place.schema if name == "eu-1" else "laneway"
            queue = AsyncQueue(url, schema=schema, call_timeout=5)
            found[name] = await stack.enter_async_context(queue)
            await queue.install()
        yield found


@asynccontextmanager
async def two_files(folder: Path) -> AsyncIterator[dict[str, AsyncQueue]]:
    async with AsyncExitStack() as stack:
        found = {}
        for name in ("a", "b"):
            queue = AsyncQueue(f"sqlite:///{folder}/{name}.db")
            found[name] = await stack.enter_async_context(queue)
            await queue.install()
        yield found


@run_async
async def test_all_are_served_and_until_empty_means_all(
    place: Place, mortal: EmbeddedPostgres, tmp_path: Path
) -> None:
    async with three(place, mortal, tmp_path, "all") as queues:
        worker = Worker(queues, concurrency=8)
        ran: Counter[str] = Counter()

        @worker.task
        async def second(name: str) -> None:
            ran[f"second {name}"] += 1

        @worker.task
        async def first(name: str) -> None:
            ran[name] += 1
            await second.apublish(name)  # into the database that the message came from

        for name, queue in queues.items():
            await queue.publish_many([first.message(name) for _ in range(40)])
        await asyncio.wait_for(worker.serve(until_empty=True), 60)
        assert ran == {f"{what}{name}": 40 for name in queues for what in ("", "second ")}
        for queue in queues.values():
            assert not [n for n in await queue.stats() if n.waiting + n.leased]


@run_async
async def test_messages_of_a_handler_for_another_database_are_waited_for(tmp_path: Path) -> None:
    async with two_files(tmp_path) as queues:
        worker = Worker(queues, concurrency=2)
        ran = []

        @worker.default_handler
        async def handle(left: int, message: AsyncMessage) -> None:
            ran.append(left)
            await asyncio.sleep(0.05)  # the other one has found nothing meanwhile
            if left:
                await queues["b" if left % 2 else "a"].publish(left - 1)

        await queues["a"].publish(5)
        await asyncio.wait_for(worker.serve(until_empty=True), 30)
        assert ran == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "how",
    [
        "freeze",
        pytest.param("kill", marks=pytest.mark.repeats("a frozen server is the harder case")),
    ],
)
def test_a_database_that_is_away_slows_none_of_the_others(
    place: Place, mortal: EmbeddedPostgres, tmp_path: Path, how: str
) -> None:
    @run_async
    async def check() -> None:
        async with three(place, mortal, tmp_path, f"away_{how}") as queues:
            worker = Worker(queues, concurrency=4, health_port=0, grace=1)
            ran: Counter[str] = Counter()
            held = asyncio.Event()

            @worker.handler
            async def short(name: str) -> None:
                ran[name] += 1

            @worker.handler
            async def long(name: str) -> None:
                """As one that waits for its database, on all slots of the worker."""
                ran["long"] += 1
                await held.wait()

            serving = asyncio.create_task(worker.serve())
            await until(lambda: worker.health is not None and worker.health.port > 0)
            assert worker.health is not None
            port = worker.health.port
            for _ in range(4):
                await queues["eu-2"].publish("eu-2", kind="long")
            await until(lambda: ran["long"] == 4)

            async def others_work(count: int) -> None:
                before = dict(ran)
                for name in ("eu-1", "local"):
                    for _ in range(count):
                        await queues[name].publish(name, kind="short")
                await until(
                    lambda: all(ran[n] - before.get(n, 0) == count for n in ("eu-1", "local")), 30
                )

            if how == "freeze":
                with frozen(mortal):
                    await others_work(50)
                    await named(port)
                    await others_work(50)
            else:
                await asyncio.to_thread(mortal.kill)
                await others_work(50)
                await named(port)
                await others_work(50)
                await asyncio.to_thread(mortal.start)
            held.set()
            # It is back: served as before, and health says so.
            await publish_when_back(queues["eu-2"])
            await until(lambda: ran["eu-2"] > 0, 30)
            async with asyncio.timeout(30):
                while json.loads((await get(port, "/readyz"))[1])["problems"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            worker.stop()
            await asyncio.wait_for(serving, 30)

    check()


async def publish_when_back(queue: AsyncQueue) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await queue.publish("eu-2", kind="short")
                return
            except Exception:
                await asyncio.sleep(0.1)


async def named(port: int) -> None:
    """Ready for the others, and the one that is away is named."""
    async with asyncio.timeout(30):
        while True:
            code, text = await get(port, "/readyz")
            problems = json.loads(text)["problems"]
            if problems and "away since" in problems[0]:
                break
            await asyncio.sleep(0.05)
    assert code == 200 and json.loads(text)["ok"]
    assert all(problem.startswith("eu-2: ") for problem in problems), problems


@pytest.mark.repeats("a stop with a silent database is in test_outages too")
@run_async
async def test_a_stop_does_not_wait_for_the_one_that_is_frozen(
    place: Place, mortal: EmbeddedPostgres, tmp_path: Path
) -> None:
    async with three(place, mortal, tmp_path, "stopped") as queues:
        worker = Worker(queues, concurrency=6, grace=10)
        begun, ended = Counter[str](), Counter[str]()

        @worker.default_handler
        async def handle(name: str) -> None:
            begun[name] += 1
            await asyncio.sleep(0.3)
            ended[name] += 1

        serving = asyncio.create_task(worker.serve())
        for name, queue in queues.items():
            await queue.publish_many([name] * 2)
        await until(lambda: sum(begun.values()) == 6)
        with frozen(mortal):
            worker.stop()
            await asyncio.wait_for(serving, 60)
        assert ended == {"eu-1": 2, "eu-2": 2, "local": 2}
        for name in ("eu-1", "local"):
            assert not [n for n in await queues[name].stats() if n.waiting + n.leased]
            assert not await queues[name].workers(), "its row is removed"


@run_async
async def test_one_without_a_schema_does_not_keep_the_others_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway.worker")
    async with two_files(tmp_path) as queues, AsyncQueue(f"sqlite:///{tmp_path}/c.db") as late:
        worker = Worker({**queues, "late": late}, concurrency=3)
        seen: list[str] = []

        @worker.default_handler
        async def handle(name: str) -> None:
            seen.append(name)

        serving = asyncio.create_task(worker.serve())
        await queues["a"].publish("a")
        await until(lambda: seen == ["a"])
        await until(lambda: any("late: cannot serve it" in r.getMessage() for r in caplog.records))
        await late.install()
        await late.publish("late")
        await until(lambda: seen == ["a", "late"])
        worker.stop()
        await asyncio.wait_for(serving, 20)
    assert {getattr(r, "database", None) for r in caplog.records} >= {"a", "b", "late"}


@run_async
async def test_schedules_fire_once_in_each(tmp_path: Path) -> None:
    async with two_files(tmp_path) as queues:
        worker = Worker(queues)
        seen: Counter[str] = Counter()

        @worker.default_handler
        async def handle(name: str) -> None:
            seen[name] += 1

        for name, queue in queues.items():
            start = await queue.clock() + timedelta(seconds=0.3)
            await queue.schedule("soon", name, every=3600, start=start)
        serving = asyncio.create_task(worker.serve())
        await until(lambda: seen == {"a": 1, "b": 1})
        worker.stop()
        await asyncio.wait_for(serving, 20)


@run_async
async def test_max_messages_counts_all_of_them(tmp_path: Path) -> None:
    async with two_files(tmp_path) as queues:
        worker = Worker(queues, concurrency=7, max_messages=11)
        seen: Counter[str] = Counter()

        @worker.default_handler
        async def handle(name: str) -> None:
            seen[name] += 1
            await asyncio.sleep(0.001)

        for name, queue in queues.items():
            await queue.publish_many([name] * 50)
        await asyncio.wait_for(worker.serve(), 30)
        assert sum(seen.values()) == 11
        left = [n.waiting for queue in queues.values() for n in await queue.stats()]
        assert sum(left) == 89


@pytest.mark.parametrize("concurrency", [1, 8])
def test_slots_are_shared_by_weight(tmp_path: Path, concurrency: int) -> None:
    @run_async
    async def check() -> None:
        async with two_files(tmp_path) as queues:
            worker = Worker(queues, weights={"a": 3}, concurrency=concurrency)
            seen: list[str] = []
            running: Counter[str] = Counter()
            most = 0

            @worker.default_handler
            async def handle(name: str) -> None:
                nonlocal most
                seen.append(name)
                running[name] += 1
                most = max(most, sum(running.values()))
                await asyncio.sleep(0.005)
                running[name] -= 1

            for name, queue in queues.items():
                await queue.publish_many([name] * 200)
            serving = asyncio.create_task(worker.serve())
            await until(lambda: len(seen) >= 120, 60)
            worker.stop()
            await asyncio.wait_for(serving, 20)
            share = Counter(seen[20:120])["a"] / 100
            assert most <= concurrency
            assert 0.65 <= share <= 0.85, share

    check()


@run_async
async def test_an_idle_database_gives_its_share_to_the_others(tmp_path: Path) -> None:
    async with two_files(tmp_path) as queues:
        worker = Worker(queues, concurrency=8)
        running = most = 0

        @worker.default_handler
        async def handle(payload: int) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.02)
            running -= 1

        await queues["b"].publish_many(range(80))
        await asyncio.wait_for(worker.serve(until_empty=True), 30)
        assert most == 8


class Pool:
    """As much of one as the slots look at."""

    def __init__(self, slots: Any) -> None:
        self.busy = self.queued = 0
        slots.attach(self)

    def refill(self) -> None: ...


@run_async
async def test_turns_are_exact() -> None:
    shared = SharedSlots(1, [3, 1, 2], 1)
    pools = [Pool(part) for part in shared.parts]
    for pool in pools:
        pool.queued = 1000
    started: Counter[int] = Counter()
    for number in range(600):
        order = [0, 1, 2] if number % 2 else [2, 1, 0]  # who asks first has no advantage
        started[next(one for one in order if shared.parts[one].take(0))] += 1
    for one, expected in enumerate((300, 100, 200)):
        assert abs(started[one] - expected) <= 2, started


@run_async
async def test_a_silent_claim_keeps_its_slots_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = 1000.0
    monkeypatch.setattr(fleet, "now", lambda: time)
    shared = SharedSlots(10, [1, 1], 1)
    mine, other = shared.parts
    Pool(mine), Pool(other)
    assert other.room(0) == 10
    other.asking()
    assert mine.room(0) == 0, "they are asked for"
    time += 1.1
    assert mine.room(0) == 10, "but not for ever"
    other.leave("silent")
    other.pool.busy = 10  # type: ignore[misc]
    assert mine.room(0) == 10, "what it holds while it is away is not counted"
    assert other.room(10) < 1
    other.answered(0)
    assert mine.room(0) == 0


@run_async
async def test_tasks_of_shards_are_published_where_their_channel_belongs(tmp_path: Path) -> None:
    async with two_files(tmp_path) as queues:
        shards = Shards(queues)
        worker = Worker(shards)
        seen: list[tuple[str, str]] = []

        @worker.task
        async def second(tenant: str, *, message: AsyncMessage = INJECTED) -> None:
            seen.append((tenant, message.channel))

        @worker.task(channel=lambda tenant: tenant)
        async def first(tenant: str) -> None:
            for number in range(10):
                await second.using(channel=f"t{number}").apublish(f"t{number}")

        begun = {name: (await queue.history_since()).position for name, queue in queues.items()}
        await first.apublish("t0")
        await asyncio.wait_for(worker.serve(until_empty=True), 30)
        assert sorted(seen) == [(f"t{n}", f"t{n}") for n in range(10)]
        for name, queue in queues.items():
            ended = (await queue.history_since(begun[name])).entries
            there = {entry.channel for entry in ended}
            assert there == {f"t{n}" for n in range(10) if shards.name_for(f"t{n}") == name}


def test_a_fleet_is_checked(tmp_path: Path) -> None:
    with Queue(f"sqlite:///{tmp_path}/a.db") as a, Queue(f"sqlite:///{tmp_path}/b.db") as b:
        assert [one.name for one in Worker([a, b])._databases] == ["a.db", "b.db"]
        for wrong, weights, says in (
            ([], None, "needs a Queue"),
            ([a, a], None, "same database"),
            ([a, "b"], None, "not its URL 'b'"),
            ([a, b], [1], "1 weights for 2"),
            ([a, b], [1, 0], "weight"),
            ({"a": a, "b": b}, {"c": 1}, "the databases are a, b"),
        ):
            with pytest.raises(InvalidOption, match=says):
                Worker(wrong, weights=weights)  # type: ignore[arg-type]
        with pytest.raises(InvalidName):
            Worker({"": a, "b": b})
        with pytest.raises(InvalidOption, match="several databases"):
            Worker([a, b]).definition()


@pytest.mark.parametrize(
    "other",
    [
        "sqlite_files",
        pytest.param("mariadb", marks=pytest.mark.repeats("the worker's code is the same")),
    ],
)
def test_a_signal_ends_what_runs_on_every_database_and_begins_no_more(
    request: pytest.FixtureRequest, tmp_path: Path, other: str
) -> None:
    databases: Databases = request.getfixturevalue(other)
    urls = [f"sqlite:///{tmp_path}/first.db", databases.create_database("laneway_fleet_signal")]
    for number, url in enumerate(urls):
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            queue.publish_many([NewMessage(f"{number}-{n}") for n in range(40)])
    ledger = tmp_path / "ledger"
    ledger.touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.worker.fleet_process", str(ledger), *urls]
    )
    try:
        end = time.monotonic() + 60
        while not all(f"start {number}-" in ledger.read_text() for number in range(2)):
            assert time.monotonic() < end, "not all are served"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    lines = [line.split() for line in ledger.read_text().splitlines()]
    began = Counter(payload for what, payload in lines if what == "start")
    ended = Counter(payload for what, payload in lines if what == "end")
    assert began == ended, "what ran was not ended"
    assert set(began.values()) == {1}, "begun twice"
    for number, url in enumerate(urls):
        with Queue(url, upkeep_every=None) as queue:
            (found,) = queue.stats()
            mine = sum(payload.startswith(f"{number}-") for payload in ended)
            assert (found.leased, found.waiting) == (0, 40 - mine)
