import asyncio

import pytest
from httpx import AsyncClient

from laneway.testing import assert_published, drain_async, published
from shop.database import queue
from shop.tasks import make_invoice, worker

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("laneway_queue")]  # empty each time


async def test_an_order_is_placed_and_its_invoice_made(client: AsyncClient) -> None:
    placed = (await client.post("/tenants/acme/orders", json={"cents": 4200})).json()
    assert_published(make_invoice, placed["order"], "acme")
    address = f"/messages/{placed['message']}/invoice"
    assert (await client.get(address)).status_code == 409

    await drain_async(worker, check=True)  # a worker, until nothing is left to do
    invoice = (await client.get(address)).json()
    assert invoice == {
        "order": placed["order"],
        "number": f"acme-{placed['order']}",
        "cents": 4200,
    }


async def test_an_invoice_is_made_again_while_the_client_waits(client: AsyncClient) -> None:
    placed = (await client.post("/tenants/acme/orders", json={"cents": 4200})).json()
    await drain_async(worker)
    address = f"/tenants/acme/orders/{placed['order']}/invoice"
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(client.post(address))
        group.create_task(worker.serve(max_messages=1))
    assert asked.result().json()["order"] == placed["order"]


async def test_an_order_that_is_refused_publishes_nothing(client: AsyncClient) -> None:
    answer = await client.post("/tenants/acme/orders", json={"cents": 0})
    assert answer.status_code == 422
    assert not published(make_invoice)


async def test_a_tenant_has_a_limit_of_its_own(client: AsyncClient) -> None:
    await client.put("/tenants/small/limit", json={"concurrency": 2})
    for _ in range(5):
        await client.post("/tenants/small/orders", json={"cents": 1})
    claim = await queue.claim(100)
    assert [message.channel for message in claim] == ["small", "small"]


async def test_an_invoice_that_fails_is_made_again(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = (await client.post("/tenants/acme/orders", json={"cents": 4200})).json()
    with monkeypatch.context() as broken:
        broken.setattr("shop.tasks.sessions", None)
        assert [run.outcome for run in await drain_async(worker)] == ["retried"]
    (run,) = await drain_async(worker, later=True)  # the clock moves on to the next attempt
    assert (run.id, run.attempt, run.outcome) == (placed["message"], 2, "completed")
