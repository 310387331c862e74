"""The HTTP side: uvicorn shop.api:app"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Body, FastAPI, HTTPException

from laneway.errors import NotEnded

from .database import engine, queue, sessions
from .models import Order
from .tasks import Invoice, make_invoice


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with queue:
        yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.put("/tenants/{tenant}/limit")
async def limit(tenant: str, concurrency: Annotated[int, Body(embed=True)]) -> None:
    """How many invoices of one tenant may be made at a time, by all workers together."""
    await queue.channel(tenant).limit(concurrency=concurrency)


@app.post("/tenants/{tenant}/orders")
async def place_order(tenant: str, cents: Annotated[int, Body(embed=True)]) -> dict[str, int]:
    async with sessions.begin() as session:
        order = Order(tenant=tenant, cents=cents)
        session.add(order)
        await session.flush()  # gives the order its id
        task = make_invoice.using(connection=session)
        published = await task.apublish(order.id, tenant)
        if cents <= 0:
            raise HTTPException(422, "an order costs something")  # rolls back both
    return {"order": order.id, "message": published.id}


@app.post("/tenants/{tenant}/orders/{order}/invoice")
async def invoice_again(tenant: str, order: int, wait: float = 10) -> Invoice:
    published = await make_invoice.apublish(order, tenant)
    try:
        return await published.result(timeout=wait)  # an Invoice: type checkers know it too
    except NotEnded:
        raise HTTPException(409, "the invoice is not made yet") from None


@app.get("/messages/{message}/invoice")
async def invoice(message: int, wait: float = 0) -> Invoice:
    try:
        return await queue.result(message, Invoice, timeout=wait)
    except NotEnded:
        raise HTTPException(409, "the invoice is not made yet") from None
