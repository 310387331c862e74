"""FastAPI: requests publish, a worker in the same process does the work.

DATABASE_URL=postgresql://localhost/shop uvicorn examples.fastapi_app:app
"""

import os
from collections import Counter

from fastapi import FastAPI

from laneway import AsyncMessage, AsyncQueue, Exponential, Worker
from laneway.integrations.asgi import lifespan

queue = AsyncQueue(os.environ["DATABASE_URL"], name="receipts")
worker = Worker(queue, concurrency=20)
app = FastAPI(lifespan=lifespan(queue, worker, install=True))
sent: Counter[str] = Counter()


@worker.handler("send_receipt", retry=Exponential(initial=1, max_delay=300, attempts=8))
async def send_receipt(order: dict[str, int], message: AsyncMessage) -> None:
    sent[message.channel] += 1


@app.post("/tenants/{tenant}/orders/{order}")
async def place_order(tenant: str, order: int) -> dict[str, int | None]:
    published = await queue.publish(
        {"order": order}, channel=tenant, kind="send_receipt", key=f"receipt:{order}"
    )
    return {"message": published.id}


@app.get("/receipts/{tenant}")
async def receipts(tenant: str) -> dict[str, int]:
    return {"sent": sent[tenant]}
