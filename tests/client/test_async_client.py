"""The client's verbs, from publish to settings, through the public names only."""

from datetime import UTC, datetime, timedelta

import pytest

from laneway import AsyncQueue, ClaimStatus, LeaseLost, NewMessage, Policy
from laneway.errors import BacklogFull, ChannelClosed, InvalidOption, SchemaMissing
from laneway.model import KEEP
from tests.client.worlds import run_async
from tests.place import Place


async def open_queue(place: Place, **options: object) -> AsyncQueue:
    queue = AsyncQueue(place.url, schema=place.schema, **options)  # type: ignore[arg-type]
    await queue.install()
    return queue


@run_async
async def test_publish_claim_complete(place: Place) -> None:
    async with await open_queue(place) as queue:
        published = await queue.publish({"order": 1}, channel="tenant", headers={"trace": "a"})
        assert published.status == "published" and not published.existing
        claim = await queue.claim(limit=10)
        assert claim.status is ClaimStatus.GOT
        (message,) = claim
        assert message.id == published.id
        assert (message.queue, message.channel, message.kind) == ("default", "tenant", "")
        assert message.json() == {"order": 1}
        assert message.headers == {"trace": "a"}
        assert message.content_type == "application/json"
        assert (message.attempt, message.max_attempts, message.priority) == (1, 20, 0)
        assert message.until - message.claimed_at == timedelta(seconds=30)
        assert message.due == message.published_at == message.first_published_at
        assert (message.expires_at, message.key, message.state) == (None, None, None)
        await message.complete()
        with pytest.raises(LeaseLost) as lost:
            await message.complete()
        assert lost.value.message_id == message.id
        assert (await queue.claim()).status is ClaimStatus.EMPTY
        history = await queue.history(message.id)
        assert [entry.outcome for entry in history] == ["completed", "stale"]
        assert history[0].worker == queue.worker


@run_async
async def test_every_option_of_publish_arrives(place: Place) -> None:
    async with await open_queue(place) as queue:
        later = datetime.now(UTC).replace(microsecond=123) + timedelta(hours=1)
        published = await queue.publish(
            b"raw",
            channel="c",
            queue="other",
            kind="k",
            key="once",
            key_window=timedelta(minutes=1),
            priority=7,
            expires_at=later,
            max_attempts=3,
            content_type="image/png",
        )
        again = await queue.publish("else", channel="c", queue="other", kind="k", key="once")
        assert again.existing and again.id == published.id
        (message,) = await queue.claim(queues=["other", "default"], lease=timedelta(minutes=5))
        assert (message.payload, message.content_type) == (b"raw", "image/png")
        assert (message.kind, message.key, message.priority) == ("k", "once", 7)
        assert (message.max_attempts, message.expires_at) == (3, later)
        assert message.until - message.claimed_at == timedelta(minutes=5)


@run_async
async def test_many_messages_keep_their_own_options(place: Place) -> None:
    async with await open_queue(place) as queue:
        results = await queue.publish_many(
            [
                {"n": 1},
                NewMessage("two", kind="k", max_attempts=2, headers={"h": 1}),
                NewMessage(b"three", channel="b", priority=3, key="x"),
                NewMessage(4, delay=timedelta(hours=1)),
                NewMessage(5, at=datetime.now(UTC) + timedelta(hours=1)),
                NewMessage(6, expires_in=timedelta(hours=1)),
            ],
            channel="a",
        )
        assert [r.status for r in results] == ["published"] * 6
        found = {m.id: m for m in await queue.claim(limit=10)}
        first, second, third, fourth, fifth, sixth = (r.id for r in results)
        assert fourth not in found and fifth not in found
        assert [found[i].channel for i in (first, second, third) if i] == ["a", "a", "b"]
        assert [found[i].max_attempts for i in (first, second, third) if i] == [20, 2, 20]
        assert [found[i].kind for i in (first, second, third) if i] == ["", "k", ""]
        assert [found[i].headers for i in (first, second, third) if i] == [{}, {"h": 1}, {}]
        assert [found[i].key for i in (first, second, third) if i] == [None, None, "x"]
        assert first and sixth and found[first].expires_at is None
        assert found[sixth].expires_at == found[sixth].published_at + timedelta(hours=1)


@run_async
async def test_nothing_is_no_round_trip(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        assert await queue.publish_many([]) == []
        assert await queue.complete([]) == []
        assert await queue.cancel([]) == []
        await queue.set_policies({})


@run_async
async def test_more_than_a_batch_is_one_transaction(place: Place) -> None:
    async with await open_queue(place) as queue:
        results = await queue.publish_many(range(10_001))
        assert len({r.id for r in results}) == 10_001
        (stats,) = await queue.stats()
        assert (stats.waiting, stats.channels) == (10_001, 1)
        broken = [NewMessage(b"", max_attempts=1)] * 10_000 + [
            NewMessage(b"", at=datetime(9999, 12, 31, tzinfo=UTC)),
            NewMessage(b"", headers={"a": "\ud800"}),
        ]
        with pytest.raises(ValueError, match="surrogate"):
            await queue.publish_many(broken)
        (stats,) = await queue.stats()
        assert stats.waiting == 10_001


@run_async
async def test_state_is_kept_replaced_or_cleared(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish("work")
        states: list[object] = [{"page": 1}, KEEP, b"raw", None]
        seen = []
        for state in states:
            (message,) = await queue.claim()
            assert await message.defer(state=state)
            (message,) = await queue.claim()
            seen.append((message.state, message.state_type))
            await message.give_back()
        assert seen == [
            (b'{"page":1}', "application/json"),
            (b'{"page":1}', "application/json"),
            (b"raw", "application/octet-stream"),
            (None, None),
        ]


@run_async
async def test_a_deferral_with_an_error_counts(place: Place) -> None:
    async with await open_queue(place) as queue:
        published = await queue.publish("work", max_attempts=2)
        assert published.id
        (message,) = await queue.claim()
        assert await message.defer(error=ValueError("first"))
        (message,) = await queue.claim()
        assert message.attempt == 2
        assert not await message.defer(reason="again", error="second")
        (letter,) = await queue.dead_letters.list()
        assert (letter.reason, letter.error_type, letter.error) == ("max_attempts", None, "second")
        history = await queue.history(published.id)
        assert [(e.outcome, e.error_type, e.error) for e in history] == [
            ("retried", "ValueError", "first"),
            ("retried", None, "second"),
        ]


@run_async
async def test_an_error_may_hold_anything(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish("work")
        (message,) = await queue.claim()
        await message.fail("nul\0", error=ValueError("\ud800\0" + "x" * 100_000))
        (letter,) = await queue.dead_letters.list()
        assert letter.reason == "nul␀"
        assert letter.error and letter.error.startswith("?␀xxx") and len(letter.error) <= 16384


@run_async
async def test_extend_never_shortens(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish("work")
        (message,) = await queue.claim()
        until = message.until
        assert await message.extend(timedelta(seconds=1)) == until
        assert await message.extend(timedelta(hours=1)) > until
        assert message.until > until + timedelta(minutes=59)


@run_async
async def test_batches_say_which_were_lost(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish_many(range(6))
        messages = list(await queue.claim(limit=6))
        await messages[1].complete()
        assert [s.status for s in await queue.extend(messages[:2])] == ["extended", "lost"]
        assert [s.status for s in await queue.complete(messages[:2])] == ["completed", "lost"]
        assert [s.status for s in await queue.defer(messages[1:3])] == ["lost", "deferred"]
        assert [s.status for s in await queue.fail(messages[2:4])] == ["lost", "failed"]
        answers = await queue.give_back([messages[4], messages[0]], timedelta(hours=1))
        assert [(s.id, s.lost) for s in answers] == [
            (messages[4].id, False),
            (messages[0].id, True),
        ]
        assert (await queue.complete([messages[5], messages[5]]))[0].status == "completed"


@run_async
async def test_cancel(place: Place) -> None:
    async with await open_queue(place) as queue:
        first = await queue.publish(1)
        second = await queue.publish(2, delay=timedelta(hours=1))
        await queue.claim()
        assert first.id and second.id
        answers = await queue.cancel([second.id, first.id, 999_999])
        assert [a.status for a in answers] == ["cancelled", "leased", "absent"]


@run_async
async def test_limits_pause_and_numbers(place: Place) -> None:
    async with await open_queue(place) as queue:
        channel = queue.channel("tenant")
        assert await channel.policy() == Policy()
        await channel.limit(concurrency=1, rate=2.5, backlog=3)
        assert await channel.policy() == Policy(1, 2.5, 3, 3, 1.0)
        await queue.publish_many(range(3), channel="tenant")
        with pytest.raises(BacklogFull, match="'tenant' of queue 'default'") as full:
            await queue.publish_many([NewMessage(1, channel="tenant"), NewMessage(2)])
        assert [(r.status, r.refused) for r in full.value.results] == [
            ("full", True),
            ("published", False),
        ]
        claim = await queue.claim(limit=10)
        assert sorted(m.channel for m in claim) == ["default", "tenant"]
        stats = await channel.stats()
        assert (stats.waiting, stats.leased, stats.dead) == (2, 1, 0)
        assert [n.channel for n in await queue.channel_stats(queue="default")] == [
            "tenant",
            "default",
        ]
        assert (await queue.claim()).status is ClaimStatus.BLOCKED
        await channel.unlimited()
        await channel.pause()
        assert (await channel.policy()).paused
        assert (await queue.claim()).status is ClaimStatus.BLOCKED
        await channel.resume()
        assert len(await queue.claim(limit=10)) == 2
        assert (await queue.channel("quiet").stats()).waiting == 0


@run_async
async def test_a_removed_channel_takes_nothing(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish(1, channel="old")
        await queue.channel("old").remove()
        with pytest.raises(ChannelClosed, match="'old'"):
            await queue.publish(2, channel="old")
        (message,) = await queue.claim()
        await message.complete()
        await queue.upkeep()
        assert (await queue.publish(3, channel="old")).id


@run_async
async def test_policies_in_one_call(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.set_policies({"a": Policy(concurrency=1), "b": Policy(weight=2)}, queue="q")
        assert (await queue.channel("a", queue="q").policy()).concurrency == 1
        assert (await queue.channel("b", queue="q").policy()).weight == 2
        with pytest.raises(InvalidOption, match="pause"):
            await queue.set_policies({"a": Policy(paused=True)})


@run_async
async def test_dead_letters(place: Place) -> None:
    async with await open_queue(place) as queue:
        await queue.publish_many(
            [NewMessage(n, channel=f"c{n % 2}", kind="k", headers={"n": n}) for n in range(6)]
        )
        await queue.fail(await queue.claim(limit=6), "broken", error=KeyError("x"))
        letters = await queue.dead_letters.list(queue="default", kind="k", reason="broken")
        assert len(letters) == 6
        letter = letters[-1]
        assert (letter.error_type, letter.headers["n"]) == ("KeyError", int(letter.payload))
        page = await queue.dead_letters.list(limit=4)
        rest = await queue.dead_letters.list(after=page[-1])
        assert [x.id for x in [*page, *rest]] == [x.id for x in letters]
        assert not await queue.dead_letters.list(since=datetime.now(UTC) + timedelta(hours=1))
        assert await queue.dead_letters.redrive([letter.id, 999_999], max_attempts=7) == 1
        (message,) = await queue.claim(limit=10)
        assert (message.id, message.max_attempts) == (letter.id, 7)
        assert message.first_published_at == letter.first_published_at
        assert await queue.dead_letters.discard(channel="c1") == 3
        assert await queue.dead_letters.redrive(channel="c0", delay=timedelta(hours=1)) == 2
        assert not await queue.dead_letters.list()
        with pytest.raises(InvalidOption, match="which"):
            await queue.dead_letters.discard()
        with pytest.raises(InvalidOption, match="exclude"):
            await queue.dead_letters.redrive([1], queue="q")


@run_async
async def test_settings(place: Place) -> None:
    async with await open_queue(place) as queue:
        before = await queue.settings()
        after = await queue.configure(history="none", backoff_max=timedelta(hours=1))
        assert (after.history, after.history_days) == ("none", before.history_days)
        assert await queue.settings() == after
        assert after.backoff_max == timedelta(hours=1)


@run_async
async def test_upkeep_runs_with_claims(place: Place) -> None:
    now = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    async with await open_queue(
        place, clock=lambda: now, upkeep_every=timedelta(0), lease=timedelta(seconds=5)
    ) as queue:
        await queue.publish("work")
        (message,) = await queue.claim()
        assert message.claimed_at == now
        now += timedelta(seconds=6)
        claim = await queue.claim()
        assert (len(claim), claim.status, claim.look_again) == (
            0,
            ClaimStatus.EMPTY,
            timedelta(seconds=1),
        )
        now += timedelta(seconds=1)
        (message,) = await queue.claim()
        assert message.attempt == 2


@run_async
async def test_no_upkeep_unless_asked(place: Place) -> None:
    now = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    async with await open_queue(place, clock=lambda: now, upkeep_every=None) as queue:
        await queue.publish("work")
        assert len(await queue.claim()) == 1
        now += timedelta(days=1)
        assert not await queue.claim()
        report = await queue.upkeep()
        assert (report.ran, report.expired) == (True, 1)


@run_async
async def test_a_schema_that_is_not_there(empty_place: Place) -> None:
    async with AsyncQueue(empty_place.url, schema=empty_place.schema) as queue:
        for call in (
            lambda: queue.publish(1),
            lambda: queue.claim(),
            lambda: queue.schema_version(),
            lambda: queue.upgrade(),
            lambda: queue.stats(),
        ):
            with pytest.raises(SchemaMissing, match=r"queue\.install\(\)"):
                await call()


@run_async
async def test_a_client_can_be_used_again_after_close(place: Place) -> None:
    queue = await open_queue(place)
    await queue.close()
    assert await queue.schema_version() >= 1
    await queue.close()
