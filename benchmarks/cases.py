"""The situations in which a claim must cost the same."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from laneway import NewMessage, Policy, Queue

from .bench import PAYLOAD
from .cycle import Names

_LOAD = 10_000
_BUSY = 100


@dataclass(frozen=True, slots=True)
class Case:
    """``load`` fills the database; ``channel`` says where the steady publish goes. Cases of a
    ``group`` are compared with its first one."""

    group: str
    name: str
    load: Callable[[Queue], None]
    channel: Names


def many_channels(channels: int) -> Case:
    """Every channel is known and has one message waiting."""

    def load(queue: Queue) -> None:
        _publish(queue, channels, channels)
        _drain(queue)
        _publish(queue, channels, channels)

    return Case("channels, later visits", f"{channels:,} channels", load, _round_robin(channels))


def new_channels(channels: int) -> Case:
    """Nobody has claimed from any of the channels: the first claim makes their rows."""
    return Case(
        "channels, first visits",
        f"{channels:,} new channels",
        lambda queue: _publish(queue, channels, channels),
        lambda number: f"n{number}",
    )


def backlog(messages: int, channels: int) -> Case:
    return Case(
        f"backlog on {channels}",
        f"{messages:,} waiting on {channels}",
        lambda queue: _publish(queue, messages, channels),
        _round_robin(channels),
    )


def blocked(channels: int) -> Case:
    """Each has spent its burst and has a message waiting for its rate."""

    def load(queue: Queue) -> None:
        _publish(queue, 1000, _BUSY)
        limit = Policy(rate=0.00001, burst=1)
        names = [f"b{number}" for number in range(channels)]
        for first in range(0, channels, _LOAD):
            some = names[first : first + _LOAD]
            queue.set_policies(dict.fromkeys(some, limit))
            for _ in range(2):
                queue.publish_many([NewMessage(PAYLOAD, name) for name in some])
            _drain(queue)
        _publish(queue, 1000, _BUSY)

    return Case("others in the way", f"{channels:,} blocked by rate", load, _round_robin(_BUSY))


def scheduled(messages: int) -> Case:
    """On the busy channels themselves, each message with a time of its own."""

    def load(queue: Queue) -> None:
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        for first in range(0, messages, _LOAD):
            queue.publish_many(
                [
                    NewMessage(PAYLOAD, f"c{n % _BUSY}", at=tomorrow + timedelta(milliseconds=n))
                    for n in range(first, min(first + _LOAD, messages))
                ]
            )
        _publish(queue, 1000, _BUSY)

    return Case("others in the way", f"{messages:,} scheduled for later", load, _round_robin(_BUSY))


def foreign(messages: int) -> Case:
    """Another queue that nobody serves."""

    def load(queue: Queue) -> None:
        _publish(queue, messages, 1000, queue_name="other")
        _publish(queue, 1000, _BUSY)

    return Case("others in the way", f"{messages:,} in another queue", load, _round_robin(_BUSY))


def alone() -> Case:
    """What the three above are compared with."""
    return Case(
        "others in the way",
        "nothing else",
        lambda queue: _publish(queue, 1000, _BUSY),
        _round_robin(_BUSY),
    )


def all_cases(most: int) -> list[Case]:
    """With at most so many channels or messages."""
    sizes = [size for size in (10**3, 10**4, 10**5, 10**6) if size <= most]
    return [
        *map(many_channels, sizes),
        *map(new_channels, sizes),
        *(backlog(size, 1) for size in sizes),
        *(backlog(size, _BUSY) for size in sizes),
        alone(),
        blocked(min(most, 100_000)),
        scheduled(min(most, 1_000_000)),
        foreign(min(most, 200_000)),
    ]


def _publish(queue: Queue, messages: int, channels: int, queue_name: str | None = None) -> None:
    for first in range(0, messages, _LOAD):
        some = range(first, min(first + _LOAD, messages))
        queue.publish_many(
            [NewMessage(PAYLOAD, f"c{number % channels}") for number in some], queue=queue_name
        )


def _drain(queue: Queue) -> None:
    while claim := queue.claim(1000):
        queue.complete(claim)


def _round_robin(channels: int) -> Names:
    return lambda number: f"c{number % channels}"
