"""Handlers that tests run on executors: every outcome and every way to run. Each run is written
down, in a table outside of Laneway's schema, with its start, its end and its process."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg

from laneway import AsyncMessage, Defer, Exponential, Fail, Message, NoRetry, Queue, Worker

LEDGER = """
create table if not exists ran (
    schema text, message_id bigint, attempt bigint, channel text, pid integer,
    began timestamptz default clock_timestamp(), ended timestamptz)
"""
SOON = Exponential(initial=0.01, max_delay=0.01)


def make_worker(url: str, schema: str, **options: Any) -> Worker:
    worker = Worker(Queue(url, schema=schema), **options)
    worker.handler("completes")(completes)
    worker.handler("async")(completes_async)
    worker.handler("defers")(defers)
    worker.handler("fails")(fails)
    worker.handler("retries", retry=SOON)(retries)
    worker.handler("gives_up", retry=NoRetry())(always_raises)
    worker.handler("rejects", ack="reject")(always_raises)
    worker.handler("first", ack="first")(always_raises)
    worker.handler("manual", ack="manual")(settles_itself)
    worker.handler("process", run="process")(in_a_process)
    worker.handler("transaction")(in_a_transaction)
    worker.handler("undecodable")(wants_a_number)
    worker.handler("recorded", retry=SOON)(recorded)
    worker.handler("crashes")(crashes)
    return worker


def completes(payload: dict[str, Any]) -> None: ...


async def completes_async(payload: dict[str, Any]) -> None: ...


def defers(message: Message) -> Defer | None:
    """Once with state, then it is done."""
    if message.state_json() == {"page": 7}:
        return None
    return Defer(timedelta(0), state={"page": 7})


def fails(payload: dict[str, Any]) -> None:
    raise Fail("no such customer")


def retries(message: Message) -> None:
    if message.attempt < 3:
        raise ValueError("not yet")


def always_raises(payload: dict[str, Any]) -> None:
    raise ValueError("never")


async def settles_itself(message: AsyncMessage) -> None:
    await message.complete()


def in_a_process(payload: dict[str, Any]) -> None:
    if payload["n"] < 0:
        os._exit(3)


def in_a_transaction(
    payload: dict[str, Any], connection: psycopg.Connection[Any], message: Message
) -> None:
    connection.execute("insert into ran (message_id) values (%s)", [message.id])


def wants_a_number(payload: int) -> None: ...


def recorded(payload: dict[str, Any], message: Message) -> None:
    """Works for as long as the payload says."""
    with written_down(payload, message):
        time.sleep(payload["seconds"])


def crashes(payload: dict[str, Any], message: Message) -> None:
    """Takes the whole process along, the first time."""
    with written_down(payload, message):
        if message.attempt == 1:
            os._exit(3)


@contextmanager
def written_down(payload: dict[str, Any], message: Message) -> Iterator[None]:
    with psycopg.connect(payload["url"], autocommit=True) as connection:
        key = [payload["schema"], message.id, message.attempt]
        connection.execute(
            "insert into ran (schema, message_id, attempt, channel, pid)"
            " values (%s, %s, %s, %s, %s)",
            [*key, message.channel, os.getpid()],
        )
        yield
        connection.execute(
            "update ran set ended = clock_timestamp()"
            " where schema = %s and message_id = %s and attempt = %s",
            key,
        )
