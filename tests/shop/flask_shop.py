"""A shop on Flask: ordinary functions, on connections of SQLAlchemy's pool. Order and message in
one transaction, receipt and completion in another."""

import os
from typing import Any

import psycopg
from flask import Flask
from sqlalchemy import create_engine, text

from laneway import Queue, Worker

URL = os.environ["DATABASE_URL"]
engine = create_engine(URL.replace("postgresql://", "postgresql+psycopg://", 1))
queue = Queue(URL)
worker = Worker(queue, concurrency=5, lease=2)
app = Flask(__name__)


@worker.handler
def receipt(order: dict[str, int], connection: psycopg.Connection[Any]) -> None:
    connection.execute("insert into shop_receipt values (%s)", [order["id"]])


def place_order(order: int) -> dict[str, int]:
    with engine.begin() as connection:
        connection.execute(text("insert into shop_order values (:id)"), {"id": order})
        tenant = f"tenant-{order % 5}"
        queue.publish({"id": order}, kind="receipt", channel=tenant, connection=connection)
    return {"order": order}


app.add_url_rule("/orders/<int:order>", view_func=place_order, methods=["POST"])
