"""A worker process: a Worker whose handlers succeed, fail, stall and crash."""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from laneway import AsyncMessage, ClaimStatus, Constant, Defer, Worker
from laneway.client.shared.message_fields import MessageFields
from laneway.model import Settled
from laneway.worker.job import Job
from laneway.worker.telemetry.observer import OutcomeName

from .child import begin, config_text
from .config import (
    ENDLESS,
    ENDLESS_FOR,
    LEASE,
    PAUSABLE_KIND,
    SPREAD,
    RunConfig,
    added_names,
    sql,
)
from .ledger import Ledger

RETRY = Constant(every=0.2)
REPEATS = 3
TENTH = timedelta(milliseconds=100)
STEP = 0.1  # seconds
# By kind: what a worker leaves to the other one.
LEFT = {"worker-1": {"slow", "repeat"}, "worker-2": {"long", "fail"}}


def crash(payload: dict[str, Any]) -> None:
    """A segmentation fault, in a process of its own."""
    ctypes.string_at(0)


def hold_the_interpreter(seconds: float) -> None:
    """One call into C after another: no other thread runs while one lasts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(30_000_000))


def real_time() -> float:
    """Not affected by the skew of the process's clock."""
    return time.clock_gettime(time.CLOCK_REALTIME)


F = TypeVar("F", bound=Callable[..., Any])


class Taking:
    """``worker.handler``, for the kinds that this worker takes."""

    def __init__(self, worker: Worker, config: RunConfig) -> None:
        self._worker = worker
        self._left = LEFT.get(config.name, set()) if config.by_kind else set()

    def __call__(self, kind: str, **options: Any) -> Callable[[F], F]:
        def register(function: F) -> F:
            if kind not in self._left:
                self._worker.handler(kind, **options)(function)
            return function

        return register


class ConfirmedEnds:
    """Records when the database has confirmed an outcome."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None: ...

    def lost(self, job: Job) -> None: ...

    def settled(self, job: Job, result: Settled | None) -> None:
        if result is not None and not result.lost:
            self._ledger.record("settled", id=job.id, fence=job.fence)


def make_worker(config: RunConfig, ledger: Ledger) -> Worker:
    worker = Worker(
        config.queue(), concurrency=8, processes=1, grace=timedelta(seconds=5),
        observers=[ConfirmedEnds(ledger)],
    )  # fmt: skip
    rng = config.rng
    handler = Taking(worker, config)

    @worker.middleware
    async def around(message: MessageFields, call: Any) -> object:
        record_start(ledger, message)
        try:
            result = await call()
        except Exception:
            ledger.record("raised", id=message.id, fence=message.fence)
            raise
        terms: dict[str, Any] = {"verb": "complete"}
        if isinstance(result, Defer):
            saves = result.state["done"] if isinstance(result.state, dict) else None
            terms = {"verb": "defer", "delay": TENTH.total_seconds(), "saves": saves}
        ledger.record("settle_tried", id=message.id, fence=message.fence, **terms)
        return result if isinstance(result, Defer) else {"fence": message.fence}

    @handler(PAUSABLE_KIND, retry=RETRY)
    @handler("plain", retry=RETRY)
    async def plain() -> None:
        await asyncio.sleep(rng.uniform(0, 0.05))

    @handler("slow", retry=RETRY)
    async def slow() -> None:
        await asyncio.sleep(rng.uniform(0.3, 0.7))

    @handler("long", retry=RETRY)
    async def long(payload: dict[str, Any], message: AsyncMessage) -> None:
        """Records that it is still working, so that one that goes on too long is found."""
        for _ in range(int(LEASE.total_seconds() * rng.uniform(1.3, 2.5) / STEP)):
            await asyncio.sleep(STEP)
            ledger.record("working", id=message.id, fence=message.fence)

    @handler(ENDLESS, retry=RETRY)
    async def endless(payload: dict[str, Any], message: AsyncMessage) -> None:
        await asyncio.sleep(ENDLESS_FOR)

    @handler(SPREAD, retry=RETRY)
    async def spread(payload: dict[str, Any], message: AsyncMessage) -> None:
        """Adds to its flow, and may fail after that: what an attempt added that did not complete is
        never begun, also if the next one adds nothing."""
        if message.attempt > 1 and rng.random() < 0.5:
            return
        first, second = added_names(payload["n"])
        async with message.flow() as flow:
            one = flow.add({"n": first}, kind="plain", max_attempts=5)
            two = flow.add({"n": second}, kind="plain", max_attempts=5, after=one)
        nodes = [
            {"id": one.id, "n": first, "when": "completed", "after": [message.id]},
            {"id": two.id, "n": second, "when": "completed", "after": [one.id]},
        ]
        ledger.record("flow_added", adder=message.id, fence=message.fence, nodes=nodes)
        await asyncio.sleep(rng.uniform(0, 0.6))
        if message.attempt == 1 and rng.random() < 0.5:
            raise ValueError("not yet")

    @handler("repeat", retry=RETRY)
    async def repeat(payload: dict[str, Any], message: AsyncMessage) -> Defer | None:
        done = 0 if message.state is None else message.state_json()["done"]
        return Defer(TENTH, state={"done": done + 1}) if done < REPEATS else None

    @handler("fail", retry=RETRY)
    def fail(payload: dict[str, Any], message: MessageFields) -> None:
        """After so many attempts it may heal: one that was redriven completes."""
        heals = payload.get("heals", message.attempt)
        if message.failures < payload["fails"] and message.attempt <= heals:
            raise ValueError("not yet")

    @handler("exit", retry=RETRY)
    async def leave(payload: dict[str, Any]) -> None:
        ledger.record("fault", kind="exit", target=config.name, span=1e9)
        os._exit(9)

    handler("segfault", retry=RETRY, run="process")(crash)
    if not config.by_kind:
        worker.default_handler(plain)

    @handler("hog", retry=RETRY)
    async def hog(payload: dict[str, Any]) -> None:
        # A claim that returned meanwhile was not seen: what it took could not be heartbeated.
        begun, planned = real_time(), LEASE.total_seconds() * 1.2
        fault = {"kind": "hog", "target": config.name, "t": begun, "unstarted": True}
        # Before it, as the process may not live to its end, and after it, if that took longer.
        ledger.record("fault", **fault, span=planned)
        hold_the_interpreter(planned)
        if (span := real_time() - begun) > planned + STEP:
            ledger.record("fault", **fault, span=span)

    if config.engine == "postgresql":
        add_effect_handler(handler, ledger)
    return worker


def add_effect_handler(handler: Taking, ledger: Ledger) -> None:
    import psycopg

    text = sql("postgresql", "add_effect").replace("$1", "%s")

    @handler("effect", retry=RETRY)
    async def effect(
        payload: dict[str, Any], tx: psycopg.AsyncConnection, message: AsyncMessage
    ) -> dict[str, int]:
        await tx.execute(text.encode(), [payload["n"]])
        await asyncio.sleep(0.02)
        if message.failures < payload["fails"]:
            raise ValueError("not yet")
        ledger.record("settle_tried", id=message.id, fence=message.fence, verb="complete")
        return {"fence": message.fence}


def record_start(ledger: Ledger, message: MessageFields) -> None:
    done = message.state_json()["done"] if message.state is not None else 0
    ledger.record(
        "start", id=message.id, fence=message.fence, attempt=message.attempt,
        channel=message.channel, queue=message.queue, kind=message.kind, n=message.json()["n"],
        done=done,
    )  # fmt: skip


def main(text: str) -> None:
    config = begin(text)
    make_worker(config, config.ledger()).run()


if __name__ == "__main__":
    main(config_text())
