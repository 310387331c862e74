"""What a case gets: clients, a clock, the caller's transactions, and a queue of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.client.shared.claim import Claim
from laneway.contract import Ability
from laneway.model import ClaimStatus, NewMessage

from .caller_transactions import Caller
from .registry import CaseSkipped


class HandClock:
    """Starts at the real time, because a database's views read its own clock."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        """Lets time pass; only forwards, as clocks of databases do."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += timedelta(seconds=seconds)
        return self.now


Open = Callable[..., AsyncQueue]
OpenCaller = Callable[[], Awaitable[Caller]]


class World:
    """One case's view. ``queue`` is its client; nobody else uses the queue ``name``.

    Clients run no upkeep by themselves: cases call it when they mean it.
    """

    def __init__(
        self,
        name: str,
        open_client: Open,
        open_caller: OpenCaller,
        lacks: Mapping[Ability, str],
    ) -> None:
        self.name = name
        self.clock = HandClock()
        self._open_client = open_client
        self._open_caller = open_caller
        self._lacks = lacks
        self.queue = self.client()

    def client(self, **options: Any) -> AsyncQueue:
        """One more client of the same queue, as another process would have it."""
        wanted = {"name": self.name, "clock": self.clock, "upkeep_every": None}
        return self._open_client(**(wanted | options))

    async def caller(self) -> Caller:
        """The caller's own transaction: ``async with await world.caller() as mine``."""
        return await self._open_caller()

    def needs(self, ability: Ability) -> None:
        """Skips the case, with the reason, where the database cannot have this."""
        if ability in self._lacks:
            raise CaseSkipped(self._lacks[ability])

    # What many cases do.

    async def publish(self, *payloads: object, **options: Any) -> list[int]:
        """Each payload in a call of its own, a millisecond apart; answers the ids."""
        ids = []
        for payload in payloads:
            published = await self.queue.publish(payload, **options)
            assert published.id is not None, published
            ids.append(published.id)
            self.clock.advance(0.001)
        return ids

    async def fill(self, channel: str, count: int, **options: Any) -> list[int]:
        """``count`` messages in one call; answers the ids."""
        messages = [NewMessage(number, channel=channel, **options) for number in range(count)]
        return [p.id for p in await self.queue.publish_many(messages) if p.id is not None]

    async def claim(self, limit: int = 1, client: AsyncQueue | None = None) -> Claim[AsyncMessage]:
        """A claim that looks again while the answer is "busy", as workers do."""
        for _ in range(20):
            claim = await (client or self.queue).claim(limit)
            if claim.status is not ClaimStatus.BUSY:
                break
        return claim

    async def claim_one(self, **options: Any) -> AsyncMessage:
        claim = await self.queue.claim(**options)
        assert len(claim) == 1, claim
        return claim[0]

    async def drain(self, limit: int = 100, client: AsyncQueue | None = None) -> list[AsyncMessage]:
        """Claims until nothing more comes."""
        found: list[AsyncMessage] = []
        while claim := await self.claim(limit, client):
            found += claim
        return found

    async def all_wait(self, limit: str, count: int) -> None:
        """Claims until all that names the shared limit was asked for."""
        for _ in range(count):
            if (await self.queue.limits[limit].get()).waiting == count:
                return
            await self.claim(100)
        raise AssertionError(f"{count} should wait: {await self.queue.limits[limit].get()}")

    async def expire(self, seconds: float = 31) -> None:
        """Lets the leases run out, and has them taken back."""
        self.clock.advance(seconds)
        await self.upkeep()

    async def upkeep(self) -> None:
        """Until nothing is left to do: what other cases left may come before ours."""
        while (await self.queue.upkeep()).expired:
            pass

    @asynccontextmanager
    async def configured(self, **settings: Any) -> AsyncIterator[None]:
        """Settings hold for the whole schema, so they are put back."""
        before = await self.queue.settings()
        await self.queue.configure(**settings)
        try:
            yield
        finally:
            await self.queue.configure(
                history=before.history,
                history_days=before.history_days,
                backoff_initial=before.backoff_initial,
                backoff_max=before.backoff_max,
                audit_days=before.audit_days,
            )

    def later(self, seconds: float) -> datetime:
        return self.clock.now + timedelta(seconds=seconds)
