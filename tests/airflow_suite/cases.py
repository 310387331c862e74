"""The provider, the trigger and the operator, as Airflow finds and calls them."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.messaging.triggers.msg_queue import MessageQueueTrigger
from airflow.sdk import DAG
from airflow.triggers.shared_stream import SharedStreamManager

import laneway.integrations.airflow as provider
from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.integrations.airflow import LanewayTrigger, PublishOperator

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "airflow.md"


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    url = f"sqlite:///{tmp_path}/jobs.db"
    connection = {"conn_type": "generic", "extra": {"url": url}}
    monkeypatch.setenv("AIRFLOW_CONN_LANEWAY_DEFAULT", json.dumps(connection))
    with Queue(url) as opened:
        opened.install()
        yield opened


def states(queue: Queue) -> list[tuple[str, int]]:
    return [(m.state, m.attempt) for m in queue.messages()]


async def until_settled(queue: Queue, wanted: list[tuple[str, int]]) -> None:
    for _ in range(500):
        if states(queue) == wanted:
            return
        await asyncio.sleep(0.01)
    assert states(queue) == wanted


def test_airflow_finds_the_provider() -> None:
    trigger = MessageQueueTrigger(scheme="laneway", queues=["orders"], kinds=["placed"])
    name, given = trigger.serialize()
    assert name == "laneway.integrations.airflow.LanewayTrigger"
    assert (given["queues"], given["kinds"]) == (["orders"], ["placed"])
    assert LanewayTrigger(**given).serialize() == (name, given)


def test_by_the_address_of_a_queue() -> None:
    with pytest.warns(Warning, match="deprecated"):
        trigger = MessageQueueTrigger(queue="laneway://shop_db/orders", poll=2.0)
    given = trigger.serialize()[1]
    assert (given["conn_id"], given["queues"], given["poll"]) == ("shop_db", ["orders"], 2.0)


def test_a_message_becomes_an_event(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "STORED_WITHIN", 0.0)
    queue.publish({"order": 7}, channel="tenant-42", kind="placed", headers={"h": 1})
    queue.publish(b"\xff\x00", content_type="image/x")

    async def watch() -> list[Any]:
        events = []
        async for event in LanewayTrigger(poll=0.01).run():
            events.append(event.payload)
            json.dumps(event.payload)
            if len(events) == 2:
                await until_settled(queue, [("leased", 1)])
                break
        return events

    first, second = asyncio.run(watch())
    assert (first["payload"], first["channel"], first["kind"]) == (
        {"order": 7},
        "tenant-42",
        "placed",
    )
    assert second["payload"] == "/wA="


def test_a_triggerer_that_dies_loses_nothing(queue: Queue) -> None:
    """After the event was handed over, and before it was stored."""
    queue.publish(1)

    async def watch() -> Any:
        async for event in LanewayTrigger(lease=1.0, poll=0.01).run():
            return event.payload["attempt"]
        raise AssertionError("it never ends")

    assert asyncio.run(watch()) == 1
    assert states(queue) == [("leased", 1)]
    assert asyncio.run(watch()) == 2


@pytest.mark.parametrize("stored", [True, False])
def test_completed_when_airflow_has_stored_the_event(queue: Queue, stored: bool) -> None:
    queue.publish({"order": 7})

    async def triggerer() -> None:
        manager = SharedStreamManager(log=SimpleLog(), ack_timeout=0.5, cohort_grace_period=0.0)
        trigger = LanewayTrigger(poll=0.01)
        key = trigger.shared_stream_key()
        shared = manager.subscribe(trigger_id=1, trigger=trigger, key=key)
        events = trigger.filter_shared_stream(shared)
        event = await anext(events)
        assert event.payload["payload"] == {"order": 7}
        sequence = manager.bind_pending_event(trigger_id=1, key=key)
        assert sequence is not None
        coming = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        assert states(queue) == [("leased", 1)]
        if stored:
            manager.confirm_persisted([sequence])
            await until_settled(queue, [])
        else:
            for _ in range(500):
                if coming.done() or states(queue) != [("leased", 1)]:
                    break
                await asyncio.sleep(0.01)
            assert queue.messages()
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await manager.stop_all()

    asyncio.run(triggerer())


class SimpleLog:
    """Takes what a structured log takes."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def test_the_operator_publishes_once(queue: Queue) -> None:
    with DAG("shop", schedule=None):
        operator = PublishOperator(task_id="tell", payload={"order": 7}, channel="tenant-42")
    instance = SimpleNamespace(dag_id="shop", run_id="r1", task_id="tell", map_index=-1)
    first = operator.execute({"ti": instance})
    assert operator.execute({"ti": instance}) == first
    again = SimpleNamespace(**{**vars(instance), "run_id": "r2"})
    assert operator.execute({"ti": again}) != first
    assert [m.channel for m in queue.messages()] == ["tenant-42"] * 2


def test_on_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an ordinary connection of Airflow's."""
    with EmbeddedPostgres() as server:
        url = server.create_database("airflow")
        monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", url.replace("postgresql://", "postgres://"))
        with Queue(url) as queue:
            queue.install()
            queue.publish("hello", queue="orders")

        async def watch() -> Any:
            async for event in LanewayTrigger("shop_db", ["orders"], poll=0.01).run():
                return event.payload["payload"]
            raise AssertionError("it never ends")

        assert asyncio.run(watch()) == "hello"


def test_the_guide(queue: Queue) -> None:
    """Its blocks are DAGs that Airflow takes."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(blocks) == 2
    for block in blocks:
        found: dict[str, Any] = {}
        exec(compile(block, str(GUIDE), "exec"), found)
        assert any(isinstance(value, DAG) for value in found.values())
