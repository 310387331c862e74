"""A worker process: the package's own Worker with handlers of every kind of trouble."""

import asyncio
import ctypes
import os
import time
from datetime import timedelta
from typing import Any

from penstock import AsyncMessage, Constant, Defer, Worker
from penstock.client.fields import MessageFields

from .child import begin, handed_over
from .ledger import Ledger
from .stage import LEASE, Stage, sql

RETRY = Constant(every=0.2)
REPEATS = 3
TENTH = timedelta(milliseconds=100)
STEP = 0.1  # seconds


def crash(payload: dict[str, Any]) -> None:
    """In a process of its own."""
    ctypes.string_at(0)


def hold_the_interpreter(seconds: float) -> None:
    """One call into C after another: no other thread runs while one lasts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(30_000_000))


def real_time() -> float:
    """Whatever the process believes."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def make_worker(stage: Stage, ledger: Ledger) -> Worker:
    worker = Worker(stage.queue(), concurrency=8, processes=1, grace=timedelta(seconds=5))
    dice = stage.dice

    @worker.middleware
    async def around(message: MessageFields, call: Any) -> object:
        note_start(ledger, message)
        try:
            result = await call()
        except Exception:
            ledger.note("raised", id=message.id, fence=message.fence)
            raise
        terms: dict[str, Any] = {"verb": "complete"}
        if isinstance(result, Defer):
            saves = result.state["done"] if isinstance(result.state, dict) else None
            terms = {"verb": "defer", "delay": TENTH.total_seconds(), "saves": saves}
        ledger.note("settle_tried", id=message.id, fence=message.fence, **terms)
        return result

    @worker.handler("plain", retry=RETRY)
    async def plain() -> None:
        await asyncio.sleep(dice.uniform(0, 0.05))

    @worker.handler("slow", retry=RETRY)
    async def slow() -> None:
        await asyncio.sleep(dice.uniform(0.3, 0.7))

    @worker.handler("long", retry=RETRY)
    async def long(payload: dict[str, Any], message: AsyncMessage) -> None:
        """Says that it works while it does, so that one who goes on too long is seen."""
        for _ in range(int(LEASE.total_seconds() * dice.uniform(1.3, 2.5) / STEP)):
            await asyncio.sleep(STEP)
            ledger.note("working", id=message.id, fence=message.fence)

    @worker.handler("repeat", retry=RETRY)
    async def repeat(payload: dict[str, Any], message: AsyncMessage) -> Defer | None:
        done = 0 if message.state is None else message.state_json()["done"]
        return Defer(TENTH, state={"done": done + 1}) if done < REPEATS else None

    @worker.handler("fail", retry=RETRY)
    def fail(payload: dict[str, Any], message: MessageFields) -> None:
        if message.failures < payload["fails"]:
            raise ValueError("not yet")

    @worker.handler("exit", retry=RETRY)
    async def leave(payload: dict[str, Any]) -> None:
        ledger.note("fault", kind="exit", target=stage.name, span=1e9)
        os._exit(9)

    worker.handler("segfault", retry=RETRY, run="process")(crash)

    @worker.handler("hog", retry=RETRY)
    async def hog(payload: dict[str, Any]) -> None:
        begun = real_time()
        hold_the_interpreter(LEASE.total_seconds() * 1.2)
        # A claim that was answered meanwhile was never seen: nobody could hold what it took.
        span = real_time() - begun
        ledger.note("fault", kind="hog", target=stage.name, t=begun, span=span, unstarted=True)

    if stage.engine == "postgresql":
        add_effect_handler(worker, ledger)
    return worker


def add_effect_handler(worker: Worker, ledger: Ledger) -> None:
    import psycopg

    text = sql("postgresql", "add_effect").replace("$1", "%s")

    @worker.handler("effect", retry=RETRY)
    async def effect(
        payload: dict[str, Any], tx: psycopg.AsyncConnection, message: AsyncMessage
    ) -> None:
        await tx.execute(text.encode(), [payload["n"]])
        await asyncio.sleep(0.02)
        if message.failures < payload["fails"]:
            raise ValueError("not yet")
        ledger.note("settle_tried", id=message.id, fence=message.fence, verb="complete")


def note_start(ledger: Ledger, message: MessageFields) -> None:
    done = message.state_json()["done"] if message.state is not None else 0
    ledger.note(
        "start", id=message.id, fence=message.fence, attempt=message.attempt,
        channel=message.channel, kind=message.kind, n=message.json()["n"], done=done,
    )  # fmt: skip


def main(text: str) -> None:
    stage = begin(text)
    make_worker(stage, stage.ledger()).run()


if __name__ == "__main__":
    main(handed_over())
