"""Which database a channel belongs to."""

from collections import Counter
from pathlib import Path

import pytest

from laneway import AsyncQueue, NewMessage, Queue, Tasks, Worker
from laneway.client import Shards
from laneway.client.shards import database_name
from laneway.errors import InvalidName, InvalidOption
from tests.client.worlds import run_async

CHANNELS = [f"tenant-{number}" for number in range(10_000)]


def shards_of(folder: Path, *names: str) -> Shards[Queue]:
    return Shards({name: Queue(f"sqlite:///{folder}/{name}.db") for name in names})


def test_channels_are_spread_evenly_and_for_ever(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, "eu-1", "eu-2", "eu-3")
    # What is stored depends on it: another function would move nearly every channel.
    assert Counter(map(shards.name_for, CHANNELS)) == {
        "eu-1": 3353,
        "eu-2": 3323,
        "eu-3": 3324,
    }
    first = [shards.name_for(f"tenant-{n}")[-1] for n in range(8)]
    assert "".join(first) == "22311311"
    other = shards_of(tmp_path, "eu-3", "eu-1", "eu-2")
    assert all(shards.name_for(name) == other.name_for(name) for name in CHANNELS)


def test_one_more_takes_its_share_and_moves_no_other(tmp_path: Path) -> None:
    before = shards_of(tmp_path, "eu-1", "eu-2", "eu-3")
    after = shards_of(tmp_path, "eu-1", "eu-2", "eu-3", "eu-4")
    moved = [name for name in CHANNELS if before.name_for(name) != after.name_for(name)]
    assert {after.name_for(name) for name in moved} == {"eu-4"}
    assert len(moved) == 2543
    assert abs(len(moved) - len(CHANNELS) / 4) < 200


def test_what_waits_drains_where_it_lies(tmp_path: Path) -> None:
    """Published by two, drained after a third came."""
    before = shards_of(tmp_path, "a", "b")
    after = shards_of(tmp_path, "a", "b", "c")
    for queue in after.values():
        queue.install()
    begun = {name: queue.history_since().position for name, queue in after.items()}
    channels = CHANNELS[:60]
    for name in channels:
        before.publish(name, channel=name)
    waiting = {name: sum(n.waiting for n in queue.stats()) for name, queue in after.items()}
    assert waiting == {**Counter(map(before.name_for, channels)), "c": 0}
    for name in channels:
        after.publish(name, channel=name)
    there: Counter[str] = Counter()
    worker = Worker(after)

    @worker.default_handler
    def handle(channel: str) -> None:
        there[channel] += 1

    worker.run(until_empty=True)
    assert there == dict.fromkeys(channels, 2)
    ended = {name: len(queue.history_since(begun[name]).entries) for name, queue in after.items()}
    expected = Counter(map(before.name_for, channels)) + Counter(map(after.name_for, channels))
    assert ended == expected


@run_async
async def test_async_shards_publish_with_await(tmp_path: Path) -> None:
    queues = {name: AsyncQueue(f"sqlite:///{tmp_path}/{name}.db") for name in ("a", "b")}
    shards = Shards(queues)
    for queue in queues.values():
        await queue.install()
    for number in range(20):
        await shards.publish(number, channel=f"t{number}")
    await shards.publish_many([1, 2], channel="t1")
    for name, queue in queues.items():
        expected = Counter(f"t{n}" for n in (*range(20), 1, 1) if shards.name_for(f"t{n}") == name)
        found = {info.channel: info.stats.waiting for info in await queue.channels()}
        assert found == expected
        await queue.close()


def test_messages_of_two_databases_are_not_published_in_one_call(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, "a", "b")
    messages = [NewMessage(n, channel=f"t{n}") for n in range(20)]
    parts = shards.split(messages)
    assert sorted(parts) == ["a", "b"] and sum(map(len, parts.values())) == 20
    with pytest.raises(InvalidOption, match="no transaction spans them"):
        shards.publish_many(messages)
    for name, part in parts.items():
        shards[name].install()
        assert len(shards.publish_many(part)) == len(part)
        assert sum(n.waiting for n in shards[name].stats()) == len(part)


def test_tasks_bound_to_shards_go_where_their_channel_belongs(tmp_path: Path) -> None:
    shards = shards_of(tmp_path, "a", "b")
    for queue in shards.values():
        queue.install()
    tasks = Tasks()

    @tasks.task(channel=lambda tenant: tenant)
    def greet(tenant: str) -> None: ...

    tasks.bind(shards)
    for number in range(10):
        greet.publish(f"t{number}")
    for name, queue in shards.items():
        expected = {f"t{n}" for n in range(10) if shards.name_for(f"t{n}") == name}
        assert {info.channel for info in queue.channels()} == expected


def test_shards_are_checked(tmp_path: Path) -> None:
    queue = Queue(f"sqlite:///{tmp_path}/a.db")
    other = AsyncQueue(f"sqlite:///{tmp_path}/b.db")
    for wrong, says in (
        ({}, "names no database"),
        ([queue], "names no database"),
        ({"a": "b"}, "neither a Queue"),
        ({"a": queue, "b": other}, "of one kind"),
        ({"a": queue, "b": queue}, "two names for one database"),
    ):
        with pytest.raises(InvalidOption, match=says):
            Shards(wrong)  # type: ignore[type-var, arg-type]
    with pytest.raises(InvalidName):
        Shards({"": queue})
    with pytest.raises(InvalidName):
        Shards({"a": queue}).name_for("")
    assert repr(Shards({"a": queue})) == "<Shards a>"


def test_a_name_from_the_address_has_no_password() -> None:
    assert database_name("postgresql://me:secret@db.example:5432/shop?x=1") == "db.example/shop"
    assert database_name("sqlite:////tmp/jobs.db") == "jobs.db"
    assert database_name("mysql://u:p@h/d") == "h/d"
