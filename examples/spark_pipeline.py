"""From a DataFrame to messages, a worker, the lake and a report.

DATABASE_URL=postgresql://localhost/shop LAKE=/srv/lake python examples/spark_pipeline.py
"""

import os

from laneway import Fail, Queue, Worker
from laneway.lake import Lake
from laneway.spark import session

URL, ROOT = os.environ["DATABASE_URL"], os.environ["LAKE"]
ORDERS = int(os.environ.get("ORDERS", "300"))

queue = Queue(URL, name="invoices")
worker = Worker(queue, concurrency=20)


@worker.handler("invoice")
async def invoice(order: dict[str, int]) -> None:
    if order["order"] % 50 == 0:
        raise Fail("no such customer")


def publish_orders() -> None:
    """All of it or nothing, and only once, however often the job runs."""
    spark = session("invoices")
    orders = spark.range(1, ORDERS + 1).selectExpr(
        "concat('tenant-', id % 7) as channel", "to_json(struct(id as order)) as payload"
    )
    (
        orders.write.format("laneway")
        .options(url=URL, queue="invoices", kind="invoice", idempotency_key="orders of May")
        .mode("append")
        .save()
    )


def history_by_outcome() -> dict[str, int]:
    """The lake is plain Parquet: Spark, or anything else, reads it."""
    rows = session("invoices").read.parquet(f"{ROOT}/history")
    return {row["outcome"]: row["count"] for row in rows.groupBy("outcome").count().collect()}


if __name__ == "__main__":
    queue.install()
    publish_orders()
    publish_orders()
    print("waiting:", sum(stats.waiting for stats in queue.stats()))
    worker.run(until_empty=True)
    lake = Lake(URL, ROOT)
    print("synced:", lake.sync().rows, "damaged:", len(lake.verify().damaged))
    print("outcomes:", dict(sorted(history_by_outcome().items())))
    print("report:", lake.report().page)
    queue.close()
