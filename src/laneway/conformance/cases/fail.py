"""fail: given up, with a reason."""

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost


@case("fail", "the message becomes a dead letter with reason and error")
async def dead(world: World) -> None:
    await world.publish({"n": 1}, channel="a", kind="k", headers={"h": 1}, priority=4, key="key")
    message = await world.claim_one()
    await message.fail("no such customer", error=KeyError("x"))
    assert not await world.queue.claim()
    (letter,) = await world.queue.dead_letters.list(queue=world.name)
    assert (letter.id, letter.channel, letter.kind) == (message.id, "a", "k")
    assert (letter.key, letter.priority, letter.headers) == ("key", 4, {"h": 1})
    assert (letter.reason, letter.error_type, letter.error) == (
        "no such customer",
        "KeyError",
        "'x'",
    )
    assert (letter.payload, letter.content_type) == (b'{"n":1}', "application/json")
    assert (letter.attempt, letter.max_attempts) == (1, 20)
    assert letter.died_at == world.clock.now


@case("fail", "an error may be long and hold anything: it is cut and made storable")
async def any_error(world: World) -> None:
    await world.publish(1)
    await (await world.claim_one()).fail("nul\0", error="\ud800\0" + "x" * 100_000)
    (letter,) = await world.queue.dead_letters.list(queue=world.name)
    assert letter.error and len(letter.error) <= 16_384 and "xxx" in letter.error


@case("fail", "a stale holder kills nothing")
async def stale(world: World) -> None:
    await world.publish(1)
    old = await world.claim_one()
    await old.give_back()
    new = await world.claim_one()
    with raises(LeaseLost):
        await old.fail()
    assert not await world.queue.dead_letters.list(queue=world.name)
    await new.complete()


@case("fail", "a batch says per message what happened")
async def batch(world: World) -> None:
    await world.fill("a", 3)
    messages = list(await world.queue.claim(3))
    await messages[2].complete()
    answers = await world.queue.fail(messages, "closed")
    assert [a.status for a in answers] == ["failed", "failed", "lost"]
    letters = await world.queue.dead_letters.list(queue=world.name)
    assert [x.reason for x in letters] == ["closed", "closed"]


@case("fail", "frees the channel's slot")
async def frees(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await world.fill("a", 2)
    await (await world.claim_one()).fail()
    await world.claim_one()
