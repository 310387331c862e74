"""What is refused before anything is written."""

from datetime import datetime, timedelta
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidInput, InvalidName, InvalidOption, InvalidTime
from laneway.model import NewMessage

BAD_NAMES: list[Any] = ["", "x" * 256, "ü" * 128, "a\0b", "\ud800", 7, b"bytes"]


async def nothing_written(world: World) -> None:
    assert not await world.queue.claim()
    assert not [n for n in await world.queue.stats() if n.queue == world.name]


@case("input", "bad names of channels, queues, keys and kinds are refused")
async def names(world: World) -> None:
    for name in BAD_NAMES:
        for what in ("channel", "queue", "key", "kind"):
            if what == "kind" and name == "":
                continue
            options: dict[str, Any] = {what: name}
            with raises(InvalidName):
                await world.queue.publish(1, **options)
            with raises(InvalidName):
                await world.queue.publish_many([0, NewMessage(1, **options)])
        with raises(InvalidName):
            await world.queue.channel(name).pause()
    await nothing_written(world)


@case("input", "the longest names are taken whole, and are no identifiers")
async def long_names(world: World) -> None:
    tail = "\"';drop table--%s$1"
    channel = "c" * (255 - len(tail)) + tail
    await world.publish(1, channel=channel, key="k" * 255, kind="ü" * 127)
    message = await world.claim_one()
    assert (message.channel, message.key, message.kind) == (channel, "k" * 255, "ü" * 127)


@case("input", "naive, doubled and negative times are refused")
async def times(world: World) -> None:
    second = timedelta(seconds=1)
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    bad: list[dict[str, Any]] = [
        {"at": naive},
        {"expires_at": naive},
        {"delay": -second},
        {"delay": -1},
        {"delay": "5"},
        {"delay": True},
        {"delay": float("nan")},
        {"delay": second, "at": world.later(1)},
        {"expires_in": second, "expires_at": world.later(1)},
        {"key": "k", "key_window": -second},
    ]
    for options in bad:
        with raises(InvalidTime):
            await world.queue.publish(1, **options)
    await nothing_written(world)


@case("input", "impossible options are refused")
async def options(world: World) -> None:
    bad: list[dict[str, Any]] = [
        {"priority": 201},
        {"priority": -1},
        {"priority": 1.5},
        {"max_attempts": 0},
        {"key_window": timedelta(seconds=1)},
        {"headers": ["a"]},
        {"headers": {"a": "\0"}},
        {"content_type": ""},
    ]
    for options in bad:
        with raises(InvalidInput):
            await world.queue.publish(1, **options)
    await nothing_written(world)


@case("input", "a claim of none, of too many or of no queue is refused")
async def claims(world: World) -> None:
    await world.publish(1)
    for limit in (0, -1, 10_001, 1.5):
        with raises(InvalidOption):
            await world.queue.claim(limit)  # type: ignore[arg-type]
    with raises(InvalidOption):
        await world.queue.claim(queues=[])
    for lease in (timedelta(0), timedelta(days=2)):
        with raises(InvalidTime):
            await world.queue.claim(lease=lease)
    assert (await world.claim_one()).attempt == 1


@case("input", "impossible limits are refused and leave the policy as it was")
async def limits(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(concurrency=3)
    bad: list[dict[str, Any]] = [
        {"concurrency": 0},
        {"rate": 0},
        {"rate": float("nan")},
        {"burst": 5},
        {"rate": 1, "burst": 0},
        {"backlog": -1},
        {"weight": 0},
        {"weight": 1001},
    ]
    for options in bad:
        with raises(InvalidOption):
            await channel.limit(**options)
    assert (await channel.policy()).concurrency == 3


@case("input", "one bad message refuses its whole batch")
async def whole_batch(world: World) -> None:
    with raises(InvalidOption):
        await world.queue.publish_many([1, 2, NewMessage(3, priority=999)])
    await nothing_written(world)
