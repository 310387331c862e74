"""Batches and values that are larger than one statement may be."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from laneway import Defer, Message, NewMessage, NoRetry, Queue, Worker
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.errors import PayloadTooLarge

HOUR = timedelta(hours=1)
KEPT = 16_777_216
LONG = "x" * 240


@pytest.fixture
def small(mariadb: EmbeddedMariaDB, url: str) -> Iterator[Queue]:
    mariadb.execute("set global max_allowed_packet = 1048576")
    with Queue(url, upkeep_every=None, max_payload=10_000_000) as queue:
        queue.install()
        yield queue
    mariadb.execute(f"set global max_allowed_packet = {KEPT}")


def test_many_long_errors(small: Queue) -> None:
    """For a statement that is too long the server closes the connection: a worker would retry
    forever."""
    small.publish_many([b""] * 200)
    claim = list(small.claim(200))
    small.defer(claim[:100], reason="later", error="'" * 16_000)
    assert not any(answer.lost for answer in small.fail(claim[100:], "no", error="\n" * 16_000))
    assert len(small.dead_letters.list()) == 100


def test_many_long_names(small: Queue) -> None:
    names = [f"{number}{LONG}" for number in range(2_000)]
    with small.events(what=["published"]) as events:
        answers = small.publish_many([NewMessage(b"", name, key=name) for name in names])
        assert {answer.status for answer in answers} == {"published"}
        assert len([next(events) for _ in names]) == len(names)
    assert len(claim := small.claim(2_000)) == 2_000
    assert not any(answer.lost for answer in small.give_back(claim))
    assert {answer.status for answer in small.cancel([m.id for m in claim])} == {"cancelled"}


@pytest.mark.parametrize("size", [500_000, 600_000, 3_000_000, 7_000_000])
def test_results_that_the_server_accepts_are_kept(url: str, size: int) -> None:
    """Each by itself, and several that no statement has room for together."""
    with Queue(url, upkeep_every=None, max_payload=10_000_000) as queue:
        queue.install()
        for count in (1, 3):
            published = queue.publish_many([NewMessage(n, keep_result=HOUR) for n in range(count)])
            for message in queue.claim(count):
                message.complete(result="r" * size)
            assert {len(queue.result(p.id, timeout=0)) for p in published if p.id} == {size}


def test_a_result_that_is_too_large_for_the_server(small: Queue) -> None:
    published = small.publish("x", keep_result=HOUR)
    (message,) = small.claim()
    with pytest.raises(PayloadTooLarge, match="or result needs"):
        message.complete(result="r" * 600_000)
    message.complete(result="r" * 500_000)
    assert len(small.result(published.id or 0, timeout=0)) == 500_000


def test_a_worker_makes_dead_letters_of_results_that_never_fit(small: Queue) -> None:
    """Once, without another attempt; what is written in the same batch is kept."""
    worker, ran = Worker(small), Counter[int]()

    @worker.handler
    def answer(size: int) -> str:
        ran[size] += 1
        return "r" * size

    sizes = [100_000, 600_000, 200_000, 3_000_000, 300_000]
    published = small.publish_many(
        [NewMessage(size, kind="answer", keep_result=HOUR) for size in sizes]
    )
    worker.run(until_empty=True)
    assert ran == dict.fromkeys(sizes, 1)
    letters = small.dead_letters.list()
    assert {(letter.reason, letter.attempt) for letter in letters} == {("result", 1)}
    assert len(letters) == 2 and all("max_allowed_packet" in str(x.error) for x in letters)
    kept = [p.id for p, size in zip(published, sizes, strict=True) if size <= 300_000]
    assert [len(small.result(id, timeout=0)) for id in kept if id] == [100_000, 200_000, 300_000]


def test_a_worker_retries_where_a_state_never_fits(small: Queue) -> None:
    worker = Worker(small)

    @worker.handler(retry=NoRetry())
    def go_on(message: Message) -> Defer:
        return Defer(state=b"s" * 600_000)

    small.publish("x", kind="go_on")
    worker.run(until_empty=True)
    (letter,) = small.dead_letters.list()
    assert letter.reason == "gave_up" and "max_allowed_packet" in str(letter.error)


def test_one_large_state_of_many_messages(small: Queue) -> None:
    small.publish_many([b""] * 1_000)
    claim = list(small.claim(1_000))
    assert not any(answer.lost for answer in small.defer(claim, state=b"s" * 520_000))
    assert {len(m.state or b"") for m in small.claim(3)} == {520_000}


@pytest.mark.parametrize("size", [600_000, 3_000_000])
def test_a_state_that_is_too_large(small: Queue, size: int) -> None:
    small.publish("x")
    (message,) = small.claim()
    with pytest.raises(PayloadTooLarge, match="max_allowed_packet"):
        message.defer(state=b"s" * size)
    message.defer(state=b"s" * 400_000)
    (again,) = small.claim()
    assert again.state == b"s" * 400_000


def test_a_schedule_that_is_too_large(small: Queue) -> None:
    with pytest.raises(PayloadTooLarge, match="max_allowed_packet"):
        small.schedule("s", b"s" * 600_000, every=timedelta(hours=1))
    assert small.schedules.list() == []
