"""A shop on FastAPI and taskiq. A task may run twice, so that its receipt is one that may."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from fastapi import FastAPI

from laneway import AsyncQueue
from laneway.integrations.taskiq import LanewayBroker

URL = os.environ["DATABASE_URL"]
broker = LanewayBroker(AsyncQueue(URL, lease=2), concurrency=5)


@asynccontextmanager
async def living(app: FastAPI) -> AsyncIterator[None]:
    await broker.startup()
    yield
    await broker.shutdown()


app = FastAPI(lifespan=living)


@broker.task(task_name="receipt")
async def receipt(order: int) -> None:
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        await connection.execute(
            "insert into shop_receipt values (%s) on conflict do nothing", [order]
        )


@app.post("/orders/{order}")
async def place_order(order: int) -> dict[str, int]:
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        await connection.execute("insert into shop_order values (%s)", [order])
        with broker.using(connection=connection):
            await receipt.kicker().with_labels(channel=f"tenant-{order % 5}").kiq(order)
    return {"order": order}
