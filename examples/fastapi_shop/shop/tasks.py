"""What is done after the request, by a worker: laneway worker shop.tasks"""

from dataclasses import dataclass
from datetime import timedelta

from laneway import INJECTED, AsyncMessage, Exponential, Worker

from .database import queue, sessions
from .models import Order

worker = Worker(queue, concurrency=10)


@dataclass
class Invoice:
    order: int
    number: str
    cents: int


def tenant_of(order: int, tenant: str) -> str:
    return tenant


@worker.task(
    channel=tenant_of,  # tenants take turns, and each may have limits of its own
    retry=Exponential(initial=1, max_delay=300, attempts=8),
    timeout=30,
    keep_result=timedelta(hours=1),
)
async def make_invoice(order: int, tenant: str, message: AsyncMessage = INJECTED) -> Invoice:
    async with sessions.begin() as session:
        found = await session.get_one(Order, order)
        found.invoice = f"{tenant}-{order}"
        invoice = Invoice(order, found.invoice, found.cents)
        # In the session's transaction: the invoice is written exactly once.
        await message.complete(result=invoice, connection=session)
    return invoice
