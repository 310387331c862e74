"""Fairness: turns by channel, shares by weight; by starts, or by the time that handlers take."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.errors import InvalidOption, InvalidTime
from laneway.model import NewMessage, Policy
from laneway.operations import Fairness

QUANTUM = 10


async def shares(
    world: World, calls: int, limit: int = 1, clients: Sequence[AsyncQueue] = ()
) -> Counter[str]:
    """How many messages of each channel start, a moment after each other."""
    found: Counter[str] = Counter()
    for turn in range(calls):
        world.clock.advance(0.001)
        client = clients[turn % len(clients)] if clients else world.queue
        claim = await world.claim(limit, client)
        found.update(message.channel for message in claim)
        await world.queue.complete(claim)
    return found


@case("fairness", "one at a time goes round the channels, a quantum each")
async def round_robin(world: World) -> None:
    for name in "abc":
        await world.fill(name, 60)
    assert await shares(world, 90) == {"a": 30, "b": 30, "c": 30}


@case(
    "fairness",
    "a big backlog buys no extra share: quiet channels wait one round",
)
async def backlog(world: World) -> None:
    await world.fill("big", 500)
    await world.queue.claim(1)
    for number in range(20):
        await world.fill(f"small {number}", 2)
    found = await shares(world, 8, 10)
    assert len(found) == 21
    assert found["big"] <= 40


@case("fairness", "a batch spreads over many busy channels")
async def spreads(world: World) -> None:
    await world.queue.publish_many([NewMessage(n, channel=f"c{n % 20}") for n in range(1000)])
    found = Counter(m.channel for m in await world.queue.claim(200))
    assert len(found) == 20 and set(found.values()) == {10}


@case("fairness", "a batch fills up from one busy channel")
async def fills(world: World) -> None:
    await world.fill("a", 500)
    assert len(await world.queue.claim(400)) == 400


@case("fairness", "a batch fills up from a few busy channels")
async def fills_few(world: World) -> None:
    await world.fill("a", 500)
    await world.fill("b", 20)
    assert len(await world.claim(300)) == 300
    found = await shares(world, 1, 100)
    assert sum(found.values()) == 100
    stats = await world.queue.channel("b").stats()
    assert stats.waiting == 0


@case("fairness", "a big channel does not fill a batch before a small one")
async def big_and_small(world: World) -> None:
    await world.fill("big", 300)
    for name in ("one", "two"):
        await world.fill(name, 1)
    assert await shares(world, 1, 100) == {"big": 98, "one": 1, "two": 1}


@case("fairness", "many single publishes of one channel keep no other waiting, one at a time too")
async def many_single_publishes(world: World) -> None:
    for _ in range(150):
        await world.fill("loud", 1)
    for name in ("one", "two"):
        await world.fill(name, 1)
    found = await shares(world, 12)
    assert (found["one"], found["two"]) == (1, 1)


@case("fairness", "single publishes of a few channels keep no other waiting")
async def few_singly(world: World) -> None:
    await publish_singly(world, channels=5, each=30)
    assert await starts_before_quiet(world, limit=8) <= 5 * QUANTUM + 8


@case("fairness", "single publishes of many channels keep no other waiting")
async def many_singly(world: World) -> None:
    """An engine that now and then looks further than this may take its time: two rounds."""
    await publish_singly(world, channels=12, each=30)
    assert await starts_before_quiet(world, limit=1) <= 2 * 12 * QUANTUM


@case("fairness", "news buys no earlier turn, also where others give less than they have")
async def news(world: World) -> None:
    loud = ["loud 0", "loud 1", "loud 2"]
    limited = [f"limited {number}" for number in range(20)]
    await world.queue.set_policies({name: Policy(rate=0.5, burst=1) for name in limited})
    for name in limited:
        await world.fill(name, 5)
    await shares(world, 20)
    for name in loud:
        await world.fill(name, 60)
    await shares(world, 3, QUANTUM)
    world.clock.advance(2.5)
    found: Counter[str] = Counter()
    for _ in range(10):
        for name in loud:
            await world.fill(name, 1)
        found.update(await shares(world, 1, 5))
    # A visit each, in fifty starts: nobody's second comes before another's first.
    assert {name: found[name] for name in limited} == dict.fromkeys(limited, 1)
    assert sum(found[name] for name in loud) == len(loud) * QUANTUM


async def publish_singly(world: World, channels: int, each: int) -> None:
    """Turn by turn for loud channels, each message by itself; a quiet one comes last."""
    for turn in range(channels * each):
        world.clock.advance(0.001)
        await world.fill(f"loud {turn % channels}", 1)
    await world.fill("quiet", 1)


async def starts_before_quiet(world: World, limit: int) -> int:
    before = 0
    while claim := await world.claim(limit):
        world.clock.advance(0.001)
        await world.queue.complete(claim)
        names = [message.channel for message in claim]
        if "quiet" in names:
            return before + names.index("quiet")
        before += len(names)
    raise AssertionError("the quiet channel never had its turn")


@case("fairness", "shares follow the weights")
async def weights(world: World) -> None:
    await world.queue.set_policies({"a": Policy(weight=1), "b": Policy(weight=3)})
    for name in "ab":
        await world.fill(name, 1000)
    await shares(world, 4, 40)
    found = await shares(world, 16, 40)
    assert 0.72 <= found["b"] / sum(found.values()) <= 0.78


@case("fairness", "shares follow the weights in claims of any size")
async def any_size(world: World) -> None:
    """Also a share that is no whole number, or less than one message a round."""
    weights = {"a": 1.0, "b": 3.0, "quarter": 0.25, "little": 0.05}
    await world.queue.set_policies({name: Policy(weight=w) for name, w in weights.items()})
    for name in weights:
        await world.fill(name, 1600)
    for limit in (1, 8, 20, 50):
        found = await shares(world, 480 // limit, limit)
        for name, weight in weights.items():
            share = found[name] / sum(found.values())
            assert abs(share - weight / sum(weights.values())) < 0.04, (limit, name, found)


@case("fairness", "channels of little weight do not wait for each other")
async def little(world: World) -> None:
    for name in "ab":
        await world.queue.channel(name).limit(weight=0.05)
        await world.fill(name, 100)
    for limit in (1, 2, 10):
        found = await shares(world, 40, limit)
        assert found["a"] and found["b"], (limit, found)


@case("fairness", "a returning channel joins at the current position and hoards no credit")
async def no_credit(world: World) -> None:
    await world.fill("a", 300)
    await world.fill("b", 1)
    for _ in range(20):
        await world.queue.claim(5)
        world.clock.advance(1)
    await world.fill("b", 100)
    found = await shares(world, 40)
    assert 10 <= found["b"] <= 30


@case("fairness", "an old time buys no place")
async def old_time(world: World) -> None:
    await world.fill("a", 100)
    await world.fill("old", 100, at=world.later(-86_400))
    assert await shares(world, 40) == {"a": 20, "old": 20}


@case("fairness", "several clients are as fair together as one")
async def together(world: World) -> None:
    clients = [world.client() for _ in range(3)]
    for name in "abcd":
        await world.fill(name, 100)
    found = await shares(world, 12, 10, clients)
    assert found == dict.fromkeys("abcd", 30)


@case("fairness", "a crashing tenant does not take over")
async def crashing(world: World) -> None:
    await world.fill("crash", 50)
    await world.fill("good", 50)
    found: Counter[str] = Counter()
    for _ in range(10):
        for message in await world.claim(8):
            found[message.channel] += 1
            if message.channel == "good":
                await message.complete()
        await world.expire(31)
    assert found["good"] >= 30


@case("shared limits", "shares are exact: nobody is ahead of another by more than one start")
async def exact_shares(world: World) -> None:
    name = f"limit-{uuid4().hex[:8]}"
    await world.queue.limits[name].set(concurrency=3)
    await world.fill("first", 3, limits=[name])
    held = await world.drain(10)
    weights = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "heavy": 2.0}
    await world.queue.channel("heavy").limit(weight=2)
    for channel in weights:
        await world.fill(channel, 24, limits=[name])
    await world.all_wait(name, 24 * len(weights))
    served: Counter[str] = Counter()
    for turn in range(20):
        for _ in range(1 + turn % 3):
            await held.pop(0).complete()
        # Claims smaller and larger than what is free, of several clients.
        started = await world.drain(1 + turn % 4, world.client() if turn % 2 else None)
        assert len(started) == 1 + turn % 3
        held += started
        served.update(message.channel for message in started)
        had = [served[channel] / weight for channel, weight in weights.items()]
        assert max(had) - min(had) <= 1, served


@case("shared limits", "a tenant that comes is found in a quantum, and makes up for no more")
async def comes_late(world: World) -> None:
    for clients, slots, batch in ((1, 2, 50), (2, 2, 50), (1, 20, 50)):
        name = f"limit-{uuid4().hex[:8]}"
        await world.queue.limits[name].set(concurrency=slots)
        first, late = f"{name} first", f"{name} late"
        await world.fill(first, 150, limits=[name])
        workers = [world.queue, *(world.client() for _ in range(clients - 1))]
        held: list[AsyncMessage] = []
        begun: list[str] = []
        apart = []
        for turn in range(12 + 60 // slots * 2):
            if turn == 12:
                begun.clear()
                await world.fill(late, 80, limits=[name])
            await world.queue.complete(held[: max(1, slots // 2)])
            del held[: max(1, slots // 2)]
            found = await workers[turn % clients].claim(batch)
            held += found
            begun += [message.channel for message in found]
            world.clock.advance(0.01)
            apart.append(abs(begun.count(first) - begun.count(late)))
        # Ten starts of each worker, and what one claim starts of them.
        assert max(apart[12:]) <= clients * 10 + slots, (slots, begun)
        assert apart[-1] <= 2, (slots, begun)
        await world.queue.complete(held)
        await world.queue.limits[name].remove()


@case("shared limits", "who comes back gains nothing, and is not behind either")
async def comes_back(world: World) -> None:
    name = f"limit-{uuid4().hex[:8]}"
    await world.queue.limits[name].set(concurrency=1)
    await world.publish(0, channel="first", limits=[name])
    (running,) = await world.drain(10)
    await world.fill("a", 12, limits=[name])
    await world.all_wait(name, 12)
    for _ in range(6):
        await running.complete()
        (running,) = await world.drain(10)
    # Others come when "a" has had six: they begin where it is.
    await world.fill("b", 6, limits=[name])
    await world.all_wait(name, 12)
    served: list[str] = []
    for _ in range(6):
        await running.complete()
        (running,) = await world.drain(10)
        served.append(running.channel)
    assert served.count("a") == served.count("b") == 3


async def worker_time(
    world: World, lengths: Mapping[str, float], workers: int, seconds: int, step: float = 1.0
) -> dict[str, float]:
    """How much time of so many workers each channel gets whose messages run so long, while every
    channel has more to do than they can."""
    running: list[tuple[float, AsyncMessage]] = []
    used = dict.fromkeys(lengths, 0.0)
    for tick in range(round(seconds / step)):
        now = tick * step + step / 1000
        await world.queue.complete([message for end, message in running if end <= now])
        running = [one for one in running if one[0] > now]
        while len(running) < workers and (found := await world.claim(workers - len(running))):
            running += [(now + lengths[message.channel], message) for message in found]
        for _, message in running:
            used[message.channel] += step
        world.clock.advance(step)
    return used


async def by_time(world: World, lengths: Mapping[str, float], count: int = 400) -> None:
    await world.queue.set_fairness("time")
    for name in lengths:
        await world.fill(name, count)


@case("fairness", "by time: long and short messages get the same worker time")
async def equal_times(world: World) -> None:
    lengths = {"slow": 10.0} | dict.fromkeys("abcd", 1.0)
    await by_time(world, lengths)
    used = await worker_time(world, lengths, 5, 60)
    assert sum(used.values()) == 300
    assert all(abs(time - 60) <= 3 for time in used.values()), used


@case("fairness", "by time: shares of worker time go by weight")
async def weighted_times(world: World) -> None:
    lengths = {"slow": 4.0, "quick": 1.0}
    await by_time(world, lengths)
    await world.queue.channel("slow").limit(weight=2)
    used = await worker_time(world, lengths, 6, 60)
    assert abs(used["slow"] - 240) <= 12, used


@case("fairness", "by time: many that are claimed one by one")
async def one_by_one(world: World) -> None:
    lengths = {"slow": 3.0, "a": 1.0, "b": 1.0}
    await by_time(world, lengths)
    used = await worker_time(world, lengths, 1, 75)
    assert all(abs(time - 25) <= 4 for time in used.values()), used


@case("fairness", "by time: a batch fills up, from one channel and from several in debt")
async def fills_by_time(world: World) -> None:
    await by_time(world, {"a": 1.0}, 100)
    first = await world.claim(40)
    assert len(first) == 40
    world.clock.advance(20)
    await world.queue.complete(first)
    assert len(await world.claim(30)) == 30
    assert len(await world.drain()) == 30


@case("fairness", "by time: leases that run out are charged for as long as they were held")
async def expired_times(world: World) -> None:
    await by_time(world, {"crash": 31.0, "good": 1.0})
    held = {message.channel: message for message in await world.claim(2)}
    world.clock.advance(1)
    await held["good"].complete()
    await world.expire(30)
    order = []
    for _ in range(40):
        (message,) = await world.claim()
        order.append(message.channel)
        world.clock.advance(1)
        await message.complete()
    assert 25 <= order.index("crash") <= 32, order


@case("fairness", "by time: what is given back, and what waited in a worker, is not charged")
async def uncharged(world: World) -> None:
    await by_time(world, {"a": 1.0, "b": 1.0})
    for message in await world.claim(2):
        world.clock.advance(1)
        await message.complete()
    for _ in range(5):
        claim = await world.claim(2)
        world.clock.advance(20)
        await world.queue.give_back([m for m in claim if m.channel == "a"])
        await world.queue.complete([m for m in claim if m.channel == "b"])
    found = [m.channel for m in await world.claim(20)]
    assert found.count("a") >= 15, found
    page = await world.queue.channels(queue=world.name)
    reasons = {info.channel: info.waits_for for info in page}
    assert str(reasons["b"]).startswith("time "), reasons


@case("fairness", "by time: a returning channel hoards no credit")
async def no_time_hoarded(world: World) -> None:
    lengths = {"a": 1.0, "b": 1.0}
    await by_time(world, {"a": 1.0})
    await world.fill("b", 2)
    await worker_time(world, lengths, 2, 60)
    await world.fill("b", 200)
    used = await worker_time(world, lengths, 2, 40)
    assert abs(used["b"] - 40) <= 6, used


@case("fairness", "by time: limits and order hold")
async def limited_by_time(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await by_time(world, {"a": 1.0, "b": 1.0}, 12)
    order, lost = [], 0
    while claim := await world.claim(5):
        mine = [message for message in claim if message.channel == "a"]
        lost += max(0, len(mine) - 1)
        order += [int(message.payload) for message in mine]
        world.clock.advance(1)
        await world.queue.complete(claim)
    assert (order, lost) == (list(range(12)), 0)


@case("fairness", "by time: switched on and off while messages run")
async def switched(world: World) -> None:
    for name in "abc":
        await world.fill(name, 40)
    running = list(await world.claim(9))
    for by in ("time", "starts", "time", "time", "starts"):
        fairness = await world.queue.set_fairness(by)
        assert (await world.queue.fairness()) == fairness
        assert fairness.by == by
        running += await world.claim(9)
        world.clock.advance(3)
        await world.queue.complete(running[: len(running) // 2])
        running = running[len(running) // 2 :]
        await world.queue.channel("a").limit(concurrency=50)
        running += await world.claim(4)
        await world.queue.channel("a").unlimited()
    await world.queue.complete(running)
    rest = await world.drain()
    await world.queue.complete(rest)
    stats = [info.stats for info in await world.queue.channels(queue=world.name)]
    assert all((one.waiting, one.leased) == (0, 0) for one in stats), stats
    await world.queue.channel("a").limit(concurrency=2)
    await world.fill("a", 5)
    assert len(await world.drain()) == 2


@case("fairness", "by time: claims by kind share worker time too")
async def kinds_by_time(world: World) -> None:
    await world.queue.set_fairness("time")
    for name, kind in (("slow", "x"), ("quick", "x"), ("other", "y")):
        await world.fill(name, 200, kind=kind)
    used, running = Counter[str](), list[tuple[int, AsyncMessage]]()
    for tick in range(48):
        await world.queue.complete([m for end, m in running if end <= tick])
        running = [one for one in running if one[0] > tick]
        while len(running) < 4:
            found = await world.queue.claim(4 - len(running), kinds=["x"])
            running += [(tick + (6 if m.channel == "slow" else 1), m) for m in found]
        used.update(m.channel for _, m in running)
        world.clock.advance(1)
    assert set(used) == {"slow", "quick"}
    assert abs(used["slow"] - 96) <= 12, used


@case("fairness", "by time: a setting of one queue, checked before it is written")
async def one_queue(world: World) -> None:
    assert (await world.queue.fairness()) == Fairness(world.name, "starts")
    await world.queue.set_fairness("time", turn=0.5)
    found = await world.queue.fairness()
    assert (found.by, found.turn) == ("time", timedelta(seconds=0.5))
    assert (await world.queue.fairness(queue=f"{world.name} other")).by == "starts"
    for by, turn in (("luck", None), ("starts", 1), ("time", 0), ("time", -1)):
        with suppress(InvalidOption, InvalidTime):
            await world.queue.set_fairness(by, turn=turn)  # type: ignore[arg-type]
            raise AssertionError(by)
    assert await world.queue.fairness() == found
