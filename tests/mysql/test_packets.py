"""Batches and values that are larger than one statement may be."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.errors import PayloadTooLarge

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
