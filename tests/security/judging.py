"""What must hold of any call, whatever it was given."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from laneway import AsyncQueue, LanewayError, LeaseLost
from laneway.client.shared.checks import check_storable
from laneway.client.shared.draft import draft_new
from laneway.client.shared.settle_items import MOST_NOTE
from laneway.conformance.caller_transactions import Caller
from laneway.errors import InvalidInput, NotEnded, PublishRefused, ScheduleMissing
from laneway.model import NewMessage
from laneway.payload import encode
from tests.security.calls import CALLS, Arguments
from tests.security.hostile import SIZE

# What a good value may be answered with; anything else is a value that should have been refused.
ANSWERS = (InvalidInput, PublishRefused, ScheduleMissing, NotEnded, LeaseLost)
PUBLISHING = ("Queue.publish", "Queue.publish_many")


class Judge:
    """One client, with a queue of its own that nothing hostile is done to by name."""

    def __init__(self, queue: AsyncQueue, open_caller: Callable[[], Awaitable[Caller]]) -> None:
        self._queue = queue
        self._open_caller = open_caller
        self._seen = 0

    async def judge(self, name: str, arguments: Arguments, in_transaction: bool) -> str:
        """Makes the call, and says how it ended; raises AssertionError if that is not in order."""
        call = CALLS[name]
        message = await self._claimed() if call.needs_lease else None
        self._seen = await self._newest()
        before = await self._kept()
        if not (in_transaction and call.takes_connection) and name != "Message.once":
            error, answer = await self._made(name, message, arguments)
        else:
            async with await self._open_caller() as mine:
                given = arguments | {"connection": mine.connection}
                error, answer = await self._made(name, message, given)
                assert await mine.works(), "the transaction is broken"
                await mine.commit()
        if error is not None:
            if isinstance(error, InvalidInput):
                assert await self._newest() == self._seen, "refused, but a message was written"
                assert await self._kept() == before, "refused, but something was written"
            return type(error).__name__
        await self._accepted(name, arguments, answer, message)
        return "accepted"

    async def _made(
        self, name: str, message: Any, arguments: Arguments
    ) -> tuple[LanewayError | None, Any]:
        try:
            return None, await CALLS[name].run(self._queue, message, arguments)
        except ANSWERS as error:
            text = str(error)
            assert text and text.isprintable() and len(text) < 1000, (
                f"no clear text: {text[:200]!r}"
            )
            assert text.encode()  # so that it can be logged
            return error, None

    async def _claimed(self) -> Any:
        channel = "settled"
        await self._queue.publish(1, channel=channel, queue="judged", keep_result=600)
        (message,) = await self._queue.claim(queues=["judged"])
        return message

    async def _newest(self) -> int:
        after = self._seen
        while page := await self._queue.messages(after=after, limit=1000):
            after = page[-1].id
        return after

    async def _kept(self) -> object:
        return (
            await self._queue.subscriptions(),
            [(s.queue, s.name) for s in await self._queue.schedules.list()],
            await self._queue.settings(),
            [
                (one.name, one.concurrency, one.rate, one.burst)
                for one in await self._queue.limits.list()
            ],
            (await self._queue.fairness()).by,
            sorted((c.queue, c.channel) for c in await self._queue.channels(limit=10_000)),
        )

    async def _accepted(self, name: str, arguments: Arguments, answer: Any, message: Any) -> None:
        if name in PUBLISHING:
            published = answer if name == "Queue.publish" else answer[-1]
            if published.status == "published":
                await self._check_message(published.id, arguments)
        if name == "Channel.limit":
            await self._check_policy(arguments)
        if name == "Message.complete":
            await self._check_result(message.id, arguments.get("result"))
        if name == "Message.progress":
            await self._check_progress(message, arguments)

    async def _check_message(self, message_id: int, arguments: Arguments) -> None:
        """What comes back is what went in, to the byte."""
        wanted = draft_new(NewMessage(**arguments), self._queue.name, "default", SIZE)
        info = await self._queue.message(message_id)
        assert info is not None
        assert await self._queue.payload(message_id) == wanted.payload
        for field in ("queue", "channel", "kind", "key", "priority", "content_type"):
            assert getattr(info, field) == getattr(wanted, field), field
            given = arguments.get(field)
            assert given is None or getattr(info, field) == given, field
        assert info.max_attempts == wanted.max_attempts
        assert alike(dict(info.headers), json.loads(wanted.headers or "{}"))
        if isinstance(at := arguments.get("at"), datetime):
            assert info.due is not None and info.due == at.astimezone(UTC), (info.due, at)
        if isinstance(at := arguments.get("expires_at"), datetime):
            assert info.expires_at == at.astimezone(UTC), (info.expires_at, at)

    async def _check_result(self, message_id: int, result: object) -> None:
        stored = await self._queue.stored_result(message_id)
        assert stored is not None
        assert (stored.payload, stored.content_type) == encode(result, SIZE, "result")

    async def _check_progress(self, message: Any, arguments: Arguments) -> None:
        """It goes along with the next extend."""
        await message.extend()
        info = await self._queue.message(message.id)
        assert info is not None and info.progress is not None
        assert info.progress.share == arguments["share"]
        note = arguments.get("note")
        wanted = None if note is None else check_storable("note", note, MOST_NOTE)
        assert info.progress.note == wanted

    async def _check_policy(self, arguments: Arguments) -> None:
        """It reads as it was set, and claims can live with it."""
        channel = self._queue.channel("limited")
        policy = await channel.policy()
        for field in ("concurrency", "rate", "backlog", "weight"):
            if (given := arguments.get(field)) is not None:
                assert getattr(policy, field) == given, (field, getattr(policy, field), given)
        if policy.backlog is None or policy.backlog > 0:
            for number in range(3):
                try:
                    await self._queue.publish(number, channel="limited")
                except PublishRefused:
                    break
        for message in await self._queue.claim(2):
            await message.complete()
        await channel.unlimited()
        while claim := await self._queue.claim(100):
            await self._queue.complete(claim)


def alike(one: Any, two: Any) -> bool:
    """The same, but for how a number is written: PostgreSQL keeps headers as jsonb."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(alike(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, int | float) and isinstance(two, float) and not isinstance(one, bool):
        return float(one) == two
    return type(one) is type(two) and bool(one == two)


async def read_everything(queue: AsyncQueue) -> None:
    """What was accepted can be listed, and upkeep can live with it."""
    await queue.upkeep()
    await queue.stats()
    await queue.channel_stats(limit=10_000)
    await queue.channels(limit=10_000)
    for state in (None, "waiting", "scheduled", "leased", "dead"):
        await queue.messages(state=state, limit=10_000)
    await queue.dead_letters.list(limit=10_000)
    await queue.schedules.list(limit=10_000)
    await queue.subscriptions()
    await queue.diagnose()
    await queue.history_since(await _first_position(queue), limit=10_000)
    await queue.fire_schedules(limit=10_000)


async def _first_position(queue: AsyncQueue) -> str:
    """The oldest there can be, as this engine writes it."""
    return ".".join("0" for _ in (await queue.history_since()).position.split("."))
