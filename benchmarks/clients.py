"""Client processes that begin together, and what they used."""

import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from . import counters
from .bench import Bench
from .counters import Counters

# A plain fork would copy the locks of a pool's threads; these come from a process without any.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["benchmarks.drain", "benchmarks.bulk", "benchmarks.commits"])
_PATIENCE = 300.0  # seconds until a lost client ends the run


class Done(NamedTuple):
    """One client's share."""

    messages: int
    statements: int
    began: float
    ended: float
    python: float


@dataclass(frozen=True, slots=True)
class Run:
    """All clients together; the counters are per message."""

    rate: float
    messages: int
    statements: float
    cost: Counters


Client = Callable[..., tuple[int, int]]
"""Gets a function that waits for the others, then its arguments; answers messages, statements."""


def together(bench: Bench, clients: int, client: Client, *arguments: Any) -> Run:
    """Runs ``client`` in several processes, from the moment when all are ready."""
    barrier = _PROCESSES.Barrier(clients + 1)
    results = _PROCESSES.Queue()
    processes = [
        _PROCESSES.Process(target=_run, args=(client, barrier, results, arguments), daemon=True)
        for _ in range(clients)
    ]
    for process in processes:
        process.start()
    try:
        before = _when_all_wait(bench, barrier, clients, processes)
        barrier.wait(_PATIENCE)
        done = [Done(*results.get(timeout=_PATIENCE)) for _ in processes]
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    return _summed(done, counters.read(bench, 0).since(before))


def _when_all_wait(
    bench: Bench, barrier: Any, clients: int, processes: Sequence[BaseProcess]
) -> Counters:
    while barrier.n_waiting < clients:
        if any(process.exitcode for process in processes):
            raise RuntimeError("a client process failed; its error is above")
        time.sleep(0.002)
    return counters.read(bench, 0)


def _run(client: Client, barrier: Any, results: Any, arguments: tuple[Any, ...]) -> None:
    began = spent = 0.0

    def wait() -> None:
        nonlocal began, spent
        gc.collect()  # what the start left behind is neither side's
        barrier.wait(_PATIENCE)
        began, spent = time.perf_counter(), time.process_time()

    messages, statements = client(wait, *arguments)
    results.put((messages, statements, began, time.perf_counter(), time.process_time() - spent))


def _summed(done: list[Done], cost: Counters) -> Run:
    messages = sum(client.messages for client in done)
    seconds = max(client.ended for client in done) - min(client.began for client in done)
    spent = cost._replace(python=sum(client.python for client in done))
    statements = sum(client.statements for client in done) / messages
    return Run(messages / seconds, messages, statements, spent.per(messages))
