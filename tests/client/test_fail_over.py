"""Behind one address there is another server than before, and for a while the wrong one."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import psycopg
import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.drivers import runner
from laneway.drivers.choice import open_notifier
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from laneway.stores import open_store, store_address
from laneway.worker.heartbeat.process import HeartbeatConnection, Lease
from tests.client.fail_over import Cluster, MysqlPair, at_port
from tests.client.test_silent_wire import DRIVERS, opened
from tests.client.worlds import run_async
from tests.worker.test_telemetry import get
from tests.worker.test_worker import until

LONG = 60.0  # seconds
WRONG = "takes no writes"
POSTGRESQL = [name for name, (scheme, _) in DRIVERS.items() if scheme != "mysql"]
MYSQL = [name for name, (scheme, _) in DRIVERS.items() if scheme == "mysql"]
ASYNC = [name for name, (_, is_async) in DRIVERS.items() if is_async]

_numbers = count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pair(mariadb: object) -> Iterator[MysqlPair]:
    with MysqlPair() as pair:
        yield pair


class Scene:
    """``url`` leads to the address, ``old`` and ``new`` to the servers themselves."""

    def __init__(self, driver: str, request: pytest.FixtureRequest) -> None:
        scheme = DRIVERS[driver][0]
        name = f"fail_over_{next(_numbers)}"
        if scheme == "mysql":
            self.pair: MysqlPair | Cluster = request.getfixturevalue("pair")
            assert isinstance(self.pair, MysqlPair)
            self.pair.start_over()
            self.old = self.pair.create_database(name)
            self.new = at_port(self.old, self.pair.new.port)
        else:
            self.pair = request.getfixturevalue("cluster")
            assert isinstance(self.pair, Cluster)
            self.pair.arrive()  # of an earlier test
            self.old = self.pair.primary.create_database(name)
            self.new = at_port(self.old, self.pair.standby.port)
        self.url = at_port(self.old, self.pair.port, scheme)
        self._install()

    def _install(self) -> None:
        for url in {self.old, self.new} if isinstance(self.pair, MysqlPair) else {self.old}:
            with Queue(url) as queue:
                queue.install()

    async def fail_over(self) -> None:
        await asyncio.to_thread(self.pair.fail_over)

    async def arrive(self) -> None:
        self.pair.arrive()


@pytest.fixture
def scene(driver: str, request: pytest.FixtureRequest) -> Scene:
    return Scene(driver, request)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_client_leaves_the_server_that_takes_no_writes(driver: str, scene: Scene) -> None:
    @run_async
    async def check() -> None:
        async with opened(scene.url, driver, 20.0) as queue:
            await asyncio.gather(*(queue.publish(n) for n in range(4)))  # several connections
            await scene.fail_over()
            for _ in range(3):
                with pytest.raises(ConnectionUnavailable, match=WRONG):
                    await queue.publish("refused", key="k")
                with pytest.raises(ConnectionUnavailable, match=WRONG):
                    await queue.claim(1)
            await scene.arrive()
            assert (await queue.publish("taken", key="k")).status == "published"
            await asyncio.gather(*(queue.publish(n) for n in range(4)))
            assert await queue.claim(1)
            with Queue(scene.new) as direct:
                assert direct.stats()[0].leased == 1 and direct.stats()[0].waiting >= 4
            if isinstance(scene.pair, Cluster):
                assert scene.pair.clients_of_standby() == 0

    check()


@pytest.mark.parametrize("driver", POSTGRESQL)
def test_what_only_reads_does_not_stay_on_a_standby(driver: str, scene: Scene) -> None:
    @run_async
    async def check() -> None:
        assert isinstance(scene.pair, Cluster)
        async with opened(scene.url, driver, 20.0) as queue:
            await queue.publish(1)
            await scene.fail_over()
            assert [one.waiting for one in await queue.stats()] == [1], "a standby can be read"
            await scene.arrive()
            await queue.stats()
            assert scene.pair.clients_of_standby() == 0

    check()


@pytest.mark.parametrize("driver", MYSQL)
def test_what_only_reads_does_not_stay_on_a_read_only_server(
    driver: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CHECK_AFTER", 0.0)  # as if idle for long

    @run_async
    async def check() -> None:
        assert isinstance(scene.pair, MysqlPair)
        async with opened(scene.url, driver, 20.0) as queue:
            await queue.publish(1)
            before = scene.pair.clients_of_old()
            await scene.fail_over()
            assert [one.waiting for one in await queue.stats()] == [1], "it can be read"
            await scene.arrive()
            assert [one.waiting for one in await queue.stats()] == [], "of the new server"
            while scene.pair.clients_of_old() >= before:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # until the old server has noticed

    check()


@pytest.mark.parametrize("driver", ASYNC)
def test_a_worker_goes_over_and_readiness_says_so(driver: str, scene: Scene) -> None:
    @run_async
    async def check() -> None:
        async with AsyncQueue(scene.url, lease=timedelta(minutes=5)) as queue:
            worker = Worker(queue, concurrency=3, health_port=0)
            begun, go, done = asyncio.Event(), asyncio.Event(), []

            @worker.handler
            async def slow(payload: int) -> None:
                begun.set()
                await go.wait()
                done.append(payload)

            @worker.handler
            async def quick(payload: int) -> None:
                done.append(payload)

            serving = asyncio.create_task(worker.serve())
            published = await queue.publish(1, kind="slow")
            await asyncio.wait_for(begun.wait(), LONG)
            assert worker.health is not None
            await readiness(worker.health.port, 200, "")
            await scene.fail_over()
            await readiness(worker.health.port, 503, WRONG)
            go.set()
            await scene.arrive()
            with Queue(scene.new) as direct:
                await asyncio.to_thread(direct.publish, 2, kind="quick")
                await until(lambda: done == [1, 2], LONG)
                await readiness(worker.health.port, 200, "")
                if isinstance(scene.pair, Cluster):  # the other two share no messages
                    assert published.id is not None
                    history = direct.history(published.id)
                    assert [entry.outcome for entry in history] == ["completed"]
            worker.stop()
            await asyncio.wait_for(serving, LONG)

    check()


async def readiness(port: int, wanted: int, text: str) -> None:
    """Waits for an answer of /readyz, with this among its problems."""
    answer: tuple[int, str] = (0, "")
    try:
        async with asyncio.timeout(LONG):
            while answer[0] != wanted or text not in str(json.loads(answer[1])["problems"]):
                await asyncio.sleep(0.05)
                answer = await get(port, "/readyz")
    except TimeoutError:
        pytest.fail(f"no {wanted} with {text!r}; the last answer was {answer}")


@pytest.mark.parametrize("driver", ["psycopg async", "asyncpg"])
def test_the_listening_connection_goes_over(driver: str, scene: Scene) -> None:
    @run_async
    async def check() -> None:
        assert isinstance(scene.pair, Cluster)
        notifier = open_notifier(
            scene.url, channel="fail_over", wanted=frozenset({"come"}), pooler=False
        )
        try:
            await asyncio.wait_for(notifier.listening.wait(), LONG)  # type: ignore[attr-defined]
            await scene.fail_over()
            await until(lambda: not notifier.listening.is_set(), LONG)  # type: ignore[attr-defined]
            await scene.arrive()
            await asyncio.wait_for(notifier.listening.wait(), LONG)  # type: ignore[attr-defined]
            await notifier.wait(0)
            with psycopg.connect(scene.new, autocommit=True) as connection:
                connection.execute("notify fail_over, 'come'")
            assert await notifier.wait(LONG)
        finally:
            await notifier.close()

    check()


@pytest.mark.parametrize("driver", ASYNC)
def test_the_heartbeat_goes_over(driver: str, scene: Scene) -> None:
    settings = {"url": scene.url, "schema": "laneway", "pooler": False, "call_timeout": 20.0}

    @run_async
    async def check() -> None:
        with Queue(scene.old) as queue:
            await asyncio.to_thread(queue.publish, 1)
            (message,) = queue.claim()
        held = [Lease(0, 1, message.id, message.fence, 0.0, 0.0)]
        heartbeat = HeartbeatConnection(settings)
        assert await heartbeat.hold(held, 30.0, []) == ["extended"]
        await scene.fail_over()
        for _ in range(2):
            with pytest.raises(ConnectionUnavailable, match=WRONG):
                await heartbeat.hold(held, 30.0, [])
        await scene.arrive()
        assert await heartbeat.hold(held, 30.0, []) in (["extended"], ["lost"])
        await heartbeat.close()

    check()


@pytest.mark.parametrize("driver", ["psycopg", "pymysql"])
def test_short_connections_name_the_wrong_server(driver: str, scene: Scene) -> None:
    @run_async
    async def check() -> None:
        address = store_address(scene.url, "laneway")
        await scene.fail_over()
        with (
            pytest.raises(ConnectionUnavailable, match=WRONG),
            open_store(address, "laneway.lake") as store,
            store.transaction(),
        ):
            store.tell("forget_files", lake="none", paths=["none"])
        await scene.arrive()

    check()


@pytest.mark.parametrize("driver", POSTGRESQL)
def test_of_several_hosts_the_primary_is_found(driver: str, scene: Scene) -> None:
    """As the URL says, by the driver's own means."""

    @run_async
    async def check() -> None:
        assert isinstance(scene.pair, Cluster)
        both = f"127.0.0.1:{scene.pair.primary.port},127.0.0.1:{scene.pair.standby.port}"
        url = scene.url.replace(f"127.0.0.1:{scene.pair.port}", both)
        for options in ("?target_session_attrs=read-write", ""):
            async with opened(url + options, driver, 20.0) as queue:
                await queue.publish("to the first")
                await scene.fail_over()
                if options:
                    await queue.publish("to the second")
                    assert await queue.claim(2)
                else:  # the first that answers is the standby
                    with pytest.raises(ConnectionUnavailable, match=WRONG):
                        await queue.publish("refused")
            await scene.fail_over()  # and back

    check()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_session_that_is_read_only_gets_the_databases_words(
    driver: str, request: pytest.FixtureRequest
) -> None:
    """The server is the right one: no other would do any better."""
    scheme = DRIVERS[driver][0]
    server = request.getfixturevalue("mariadb" if scheme == "mysql" else "server")
    url = server.create_database(f"read_only_{next(_numbers)}")
    name = url.rpartition("/")[2]
    with Queue(url) as queue:
        queue.install()
    if scheme == "mysql":
        server.execute("set global tx_read_only = 1")
        request.addfinalizer(lambda: server.execute("set global tx_read_only = 0"))
    else:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"alter database {name} set default_transaction_read_only = on")

    @run_async
    async def check() -> None:
        async with opened(url.replace(url.partition(":")[0], scheme, 1), driver, 20.0) as queue:
            with pytest.raises(DatabaseFailed, match=r"(?i)read.only transaction") as raised:
                await queue.publish(1)
            assert raised.value.sqlstate in ("25006", "1792")

    check()
