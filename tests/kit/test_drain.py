"""drain: what is due now, or all that waits, or all until a moment, in milliseconds."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from laneway import AsyncMessage, AsyncQueue, Constant, Defer, Message, Queue, Worker
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import InvalidCall, InvalidOption, InvalidTime
from laneway.testing import MovableClock, Ran, clock, drain, drain_async
from tests.client.worlds import run_async

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def queue(request: pytest.FixtureRequest, laneway_queue: Queue) -> Iterator[Queue]:
    if request.param == "SQLite":
        yield laneway_queue
        return
    server: EmbeddedPostgres = request.getfixturevalue("server")
    name = "".join(letter for letter in request.node.name if letter.isalnum()).lower()
    with Queue(server.create_database(name)) as queue:
        queue.install()
        yield queue


def what(ran: list[Ran]) -> list[tuple[str, int, str]]:
    return [(one.kind, one.attempt, one.outcome) for one in ran]


def test_it_says_what_ran(queue: Queue) -> None:
    worker = Worker(queue)

    @worker.handler("order")
    def order(number: int, message: Message) -> Defer | None:
        if number < 0:
            raise ValueError("no such order")
        if number == 2:
            return Defer(HOUR)
        message.complete() if number == 3 else queue.publish(number, kind="receipt")
        return None

    worker.handler("receipt", ack="reject")(lambda number: 1 / (number - 4))
    for number in (1, 2, 3, 4, -1):
        queue.publish(number, kind="order", channel=f"of {number}")
    ran = drain(worker)
    assert sorted(what(ran)) == [
        ("order", 1, "completed"),
        ("order", 1, "completed"),
        ("order", 1, "completed"),
        ("order", 1, "deferred"),
        ("order", 1, "retried"),
        ("receipt", 1, "completed"),
        ("receipt", 1, "failed"),
    ]
    assert {(one.queue, one.channel) for one in ran if one.outcome == "deferred"} == {
        ("default", "of 2")
    }
    assert drain(worker) == []


def test_retries_and_delays_run_when_the_clock_is_moved_on(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.handler("flaky", retry=Constant(every=DAY, attempts=4))
    def flaky(name: str, message: Message) -> None:
        seen.append((name, message.attempt, round((clock.now() - begun) / DAY)))
        if message.attempt < 3:
            raise ConnectionError("away")

    begun = clock.now()
    queue.publish("now", kind="flaky")
    queue.publish("in a month", kind="flaky", delay=30 * DAY)
    queue.schedule("hourly", 1, every=40 * DAY, kind="flaky")
    ran = drain(worker, later=True, check=True)
    assert [outcome for _, _, outcome in what(ran)] == ["retried", "retried", "completed"] * 2
    assert seen == [
        *[("now", 1, 0), ("now", 2, 1), ("now", 3, 2)],
        *[("in a month", 1, 30), ("in a month", 2, 31), ("in a month", 3, 32)],
    ]


def test_schedules_tick_until_a_moment(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.handler("report")
    def report(name: str) -> None:
        seen.append(((clock.now() - begun) // HOUR, name))

    begun = clock.now()
    queue.schedule("six-hourly", "tick", every=6 * HOUR, kind="report", catch_up="all")
    queue.publish("delayed", kind="report", delay=13 * HOUR)
    queue.publish("too late", kind="report", delay=25 * HOUR)
    drain(worker, until=DAY - HOUR)
    assert seen == [(6, "tick"), (12, "tick"), (13, "delayed"), (18, "tick")]
    assert (clock.now() - begun) // HOUR == 23, "the clock stands at the moment"
    drain(worker, until=begun + DAY + HOUR / 2)
    assert seen[4:] == [(24, "tick")]


def test_a_week_of_hourly_ticks(laneway_queue: Queue) -> None:
    worker = Worker(laneway_queue)
    worker.handler("tick")(lambda tick: None)
    laneway_queue.schedule("hourly", 1, cron="0 * * * *", kind="tick")
    assert len(drain(worker, until=7 * DAY)) == 7 * 24


def test_dead_letters_are_told_if_asked(queue: Queue) -> None:
    worker = Worker(queue)

    @worker.handler("order", retry=Constant(every=DAY, attempts=2))
    def order(number: int) -> None:
        raise ValueError(f"no order {number}")

    queue.publish(1, kind="order", channel="tenant-42")
    assert what(drain(worker, later=True)) == [("order", 1, "retried"), ("order", 2, "failed")]
    drain(worker, check=True)  # those before it do not count
    queue.publish(2, kind="order", channel="tenant-42")
    queue.publish(3, kind="order", delay=HOUR, max_attempts=1)
    with pytest.raises(AssertionError) as caught:
        drain(worker, until=2 * DAY, check=True)
    told = str(caught.value)
    assert told.startswith("the worker left 2 dead letters:\n")
    assert "(kind 'order', channel 'tenant-42'), attempt 2, reason 'gave_up'" in told
    assert "ValueError: no order 2" in told and "in order" in told, "with the traceback"
    assert "no order 1" not in told


@run_async
async def test_in_a_running_loop(laneway_async_queue: AsyncQueue) -> None:
    worker = Worker(laneway_async_queue)

    @worker.handler("order", retry=Constant(every=DAY, attempts=2))
    async def order(number: int, message: AsyncMessage) -> None:
        if message.attempt == 1:
            raise ValueError("not yet")

    await laneway_async_queue.publish(1, kind="order")
    assert what(await drain_async(worker, later=True)) == [
        ("order", 1, "retried"),
        ("order", 2, "completed"),
    ]
    with pytest.raises(InvalidCall, match=r"await drain_async\(worker\)"):
        drain(worker)


def test_hooks_are_called_once(laneway_queue: Queue) -> None:
    worker, calls = Worker(laneway_queue), []
    worker.on_start(lambda: calls.append("start"))
    worker.on_stop(lambda: calls.append("stop"))
    worker.on_dead(lambda letter: calls.append(f"dead after {letter.attempt}"))
    worker.handler("order", retry=Constant(every=DAY, attempts=3))(lambda number: 1 / 0)
    laneway_queue.publish(1, kind="order")
    assert len(drain(worker, later=True)) == 3
    assert calls == ["start", "dead after 3", "stop"]


def test_a_handler_that_goes_on_for_ever_ends_the_drain(
    laneway_queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.testing.draining._MOST_MOVES", 20)
    worker = Worker(laneway_queue)
    worker.handler("poll")(lambda number: Defer(DAY))
    laneway_queue.publish(1, kind="poll")
    with pytest.raises(AssertionError, match="give until= if a handler goes on for ever"):
        drain(worker, later=True)
    assert len(drain(worker, until=10.5 * DAY)) == 10


def test_what_it_cannot_move_is_refused(laneway_queue: Queue, laneway_url: str) -> None:
    own = Queue(laneway_url, clock=lambda: datetime.now(UTC))
    worker = Worker(own)
    worker.handler("order")(lambda number: None)
    with pytest.raises(InvalidOption, match="clock= of its own"):
        drain(worker, later=True)
    several = Worker([own, Queue(laneway_url, schema="other")])
    several.handler("order")(lambda number: None)
    with pytest.raises(InvalidOption, match="several databases"):
        drain(several, until=DAY)
    with pytest.raises(InvalidTime, match="without a time zone"):
        drain(worker, until=datetime(2030, 1, 1))  # noqa: DTZ001
    own.close()


@pytest.mark.parametrize(
    "move",
    [
        lambda clock: clock.move(-1),
        lambda clock: clock.move_to(clock.now() - DAY),
        lambda clock: clock.move_to(datetime(2090, 1, 1)),  # noqa: DTZ001
    ],
)
def test_the_clock_moves_forwards(
    laneway_clock: MovableClock, move: Callable[[MovableClock], object]
) -> None:
    before = laneway_clock.now()
    with pytest.raises(InvalidTime):
        move(laneway_clock)
    assert laneway_clock.now() - before < HOUR
