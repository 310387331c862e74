"""Payloads: bytes, text and JSON as they are, typed on the receiving side."""

from dataclasses import dataclass

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import DecodeError, InvalidPayload, PayloadTooLarge


@dataclass(frozen=True)
class Order:
    number: int
    lines: list[str]


@case("payload", "bytes come back byte for byte")
async def raw(world: World) -> None:
    for data in (b"", bytes(range(256)), b"\x00" * 1000):
        await world.publish(data)
        message = await world.claim_one()
        assert (message.payload, message.content_type) == (data, "application/octet-stream")
        await message.complete()


@case("payload", "text comes back as text")
async def text(world: World) -> None:
    await world.publish("naïve ☃ \0 𝄞")
    message = await world.claim_one()
    assert message.text() == message.decode(str) == "naïve ☃ \0 𝄞"
    assert message.content_type.startswith("text/plain")


@case("payload", "JSON values come back as they were")
async def json_values(world: World) -> None:
    values: list[object] = [{"a": [1, 2.5, None, True, "ü"]}, [], {}, None, 2**70, -1, True]
    for value in values:
        await world.publish(value)
        message = await world.claim_one()
        assert (message.json(), message.content_type) == (value, "application/json")
        await message.complete()


@case("payload", "a dataclass goes in and comes out by annotation")
async def typed(world: World) -> None:
    order = Order(9182, ["tea", "milk"])
    await world.publish(order)
    message = await world.claim_one()
    assert message.decode(Order) == order
    assert message.decode(dict) == {"number": 9182, "lines": ["tea", "milk"]}


@case("payload", "what is not what the reader asked for is a typed error and no more")
async def undecodable(world: World) -> None:
    await world.publish(b"\xff{")
    message = await world.claim_one()
    for read in (message.json, message.text, lambda: message.decode(Order)):
        with raises(DecodeError):
            read()
    await message.complete()


@case("payload", "the largest is taken, one byte more is refused before anything is written")
async def size(world: World) -> None:
    client = world.client(max_payload=1000)
    await client.publish(b"x" * 1000)
    with raises(PayloadTooLarge):
        await client.publish(b"x" * 1001)
    with raises(PayloadTooLarge):
        await client.publish_many([b"fine", b"x" * 1001])
    assert [len(m.payload) for m in await world.drain()] == [1000]


@case("payload", "a megabyte survives")
async def megabyte(world: World) -> None:
    data = bytes(range(256)) * 4096
    await world.publish(data)
    assert (await world.claim_one()).payload == data


@case("payload", "what is no JSON is refused before anything is written")
async def no_json(world: World) -> None:
    for value in (object(), float("nan"), {"a": 1j}, "\ud800", {"k": "\ud800"}, {1: 2}):
        with raises(InvalidPayload):
            await world.queue.publish(value)
    assert not await world.queue.claim()
