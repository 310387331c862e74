"""The overview: each problem once, with what to press; zeros that are not counted say so."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from laneway import ChannelStats, NewMessage, Policy, Queue
from laneway.inspection import ChannelInfo
from laneway.operations import Minute
from laneway.web import Dashboard
from laneway.web.pages.figures import whole_minutes
from laneway.web.pages.starts import shares
from laneway.web.pages.why import why
from laneway.web.request import WebRequest

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(tmp_path: Path, clock: Clock) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'q.db'}", upkeep_every=None, clock=clock) as client:
        client.install()
        yield client


@pytest.fixture
def pages(queue: Queue) -> Iterator[Dashboard]:
    made = Dashboard(queue, trust_local=True)
    yield made
    made.close()


def shown(pages: Dashboard, path: str = "/") -> str:
    """The text of a page, with one space where its markup was."""
    pages.cache.clear()
    path, _, query = path.partition("?")
    headers = {"host": "127.0.0.1:8400"}
    answer = pages.respond(WebRequest("GET", path, query, headers, b"", "127.0.0.1"))
    assert answer.status == 200, answer.body
    body = answer.body.decode() if isinstance(answer.body, bytes) else str(answer.body)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def problems_of(text: str) -> str:
    return text.partition("Oldest waiting")[0]


def test_a_queue_that_nobody_serves_is_named_once(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    queue.publish_many([NewMessage(n, channel="acme", queue="images") for n in range(4)])
    assert "Nothing is wrong" in shown(pages)
    clock.now += 2 * MINUTE
    text = problems_of(shown(pages))
    assert text.count("images") == 1, text
    assert "Queue “images”: no worker serves it" in text
    assert "Since 12:00:00" in text and "4 messages of channel “acme” wait." in text
    assert "no live worker serves" in shown(pages, "/system"), "the checks say it as well"


def test_a_queue_that_is_served_and_stands_still(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    """Somebody claims without a worker, so that nobody is missing."""
    queue.publish_many(range(3))
    (one,) = queue.claim(1)
    clock.now += 2 * MINUTE
    one.complete()
    for _ in range(2):
        queue.upkeep()
    text = problems_of(shown(pages))
    assert text.count("Queue “default”") == 1, text
    assert "nothing is being worked on" in text


def test_many_idle_queues_do_not_fill_the_page(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    queue.publish_many([NewMessage(n, queue=f"q{n}") for n in range(9)])
    clock.now += 2 * MINUTE
    text = problems_of(shown(pages))
    assert text.count("no worker serves it") == 5
    assert "4 more queues start nothing" in text


def test_kinds_that_fail_say_since_when(pages: Dashboard, queue: Queue, clock: Clock) -> None:
    for _ in range(40):
        queue.publish_many([NewMessage(n, kind="mail", max_attempts=1) for n in range(3)])
        claimed = queue.claim(3)
        for message in claimed[:2]:
            message.fail("no") if clock.now >= NOON + 10 * MINUTE else message.complete()
        claimed[2].complete()
        clock.now += MINUTE
        queue.upkeep()
    text = problems_of(shown(pages))
    assert "Messages “mail” of queue “default” fail: 67% of attempts" in text, text
    assert "Since 12:10:00 ( 30 min )" in text and "Pause it for 15 min" in text


def test_pauses_are_ended_from_the_overview(pages: Dashboard, queue: Queue, clock: Clock) -> None:
    queue.publish(1, channel="acme")
    queue.channel("acme").pause()
    queue.pause(queue="mails", reason="the relay is down")
    text = problems_of(shown(pages))
    assert "Channel “acme” is paused and holds 1 message that is due" in text
    assert "Queue “mails” is paused" in text and "the relay is down" in text
    assert text.count("Resume") == 2


@pytest.mark.parametrize(
    ("history", "says"),
    [("none", "The history is off"), ("failures", "The history keeps only failures")],
)
def test_zeros_that_are_not_counted_say_so(
    pages: Dashboard, queue: Queue, clock: Clock, history: str, says: str
) -> None:
    for path in ("/", "/queue?name=default"):
        assert "does not mean that nothing happens" not in shown(pages, path)
    queue.configure(history=history)  # type: ignore[arg-type]
    queue.publish_many(range(3))
    queue.complete(queue.claim(3))
    clock.now += MINUTE
    queue.upkeep()
    for path in ("/", "/queue?name=default"):
        text = shown(pages, path)
        assert says in text and "does not mean that nothing happens" in text
        assert re.search(r"Done a minute \u2013", text), text


def test_dead_letters_that_differ_in_numbers_are_one_group(pages: Dashboard, queue: Queue) -> None:
    for row in range(6):
        queue.publish(row, kind="import", max_attempts=1)
        queue.claim(1)[0].fail(f"row {row} has no customer")
    text = shown(pages, "/dead-letters")
    groups = text.partition("By error")[2].partition("One by one")[0]
    assert groups.count("row # has no customer") == 1 and " 6 import" in groups, groups


def test_what_has_just_come_does_not_wait_for_its_share() -> None:
    """Else the fair share would seem to be withheld from everybody who publishes now and then."""

    def channel(name: str, waiting: int, age: float) -> ChannelInfo:
        stats = ChannelStats("q", name, waiting, oldest_due=NOON - timedelta(seconds=age))
        return ChannelInfo("q", name, stats, Policy())

    channels = [channel("busy", 900, 60), channel("starved", 5, 60), channel("new", 2, 0.1)]
    found = shares(Counter(busy=80, starved=10, new=10), channels, NOON)
    assert {one.info.channel: one.due for one in found} == {
        "busy": pytest.approx(0.45),
        "starved": pytest.approx(0.45),
        "new": None,
    }


def test_the_minute_under_way_is_not_drawn_as_a_fall() -> None:
    minutes = [Minute(NOON + n * MINUTE, None, None, completed=60) for n in range(4)]
    now = NOON + 3 * MINUTE + timedelta(seconds=5)
    assert [m.at for m in whole_minutes(minutes, now)] == [m.at for m in minutes[:3]]
    assert list(whole_minutes(minutes[3:], now)) == minutes[3:], "there is nothing else to draw"


def test_a_bulk_action_that_takes_more_than_its_group_says_so(
    pages: Dashboard, queue: Queue, clock: Clock
) -> None:
    for text in ("no answer", "no answer", "refused"):
        queue.publish(1, kind="hook", max_attempts=1)
        queue.claim(1)[0].fail("gave_up", error=TimeoutError(text))
    clock.now += MINUTE
    chosen = "action=redrive&queue=default&kind=hook&error_type=TimeoutError&reason=gave_up"
    for group, more in ((2, True), (3, False)):
        text = shown(pages, f"/dead-letters/bulk?{chosen}&group={group}")
        assert "Redrive 3 dead letters?" in text
        assert (f"More than the group of {group}" in text) is more


def test_limited_work_is_not_called_stuck_between_two_starts() -> None:
    stats = ChannelStats("q", "c", 100, oldest_due=NOON - 5 * MINUTE)
    limited = ChannelInfo("q", "c", stats, Policy(rate=2))
    assert why(limited, NOON) == ("rate: 2 starts a second", False)
    free = ChannelInfo("q", "c", stats, Policy())
    assert why(free, NOON) == ("nothing runs, the oldest waits for 5 min", True)
