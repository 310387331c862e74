"""A shop on FastAPI: order and message in one transaction, receipt and completion in another."""

import os
from typing import Any

import psycopg
from fastapi import FastAPI

from laneway import AsyncQueue, Worker
from laneway.integrations.asgi import lifespan

URL = os.environ["DATABASE_URL"]
queue = AsyncQueue(URL)
worker = Worker(queue, concurrency=5, lease=2)
app = FastAPI(lifespan=lifespan(queue))


@app.post("/orders/{order}")
async def place_order(order: int) -> dict[str, int]:
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        await connection.execute("insert into shop_order values (%s)", [order])
        tenant = f"tenant-{order % 5}"
        await queue.publish({"id": order}, kind="receipt", channel=tenant, connection=connection)
    return {"order": order}


@worker.handler
async def receipt(order: dict[str, int], connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute("insert into shop_receipt values (%s)", [order["id"]])
