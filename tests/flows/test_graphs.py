"""Random graphs under kill -9 of workers, and of the server where there is one: every node once,
none too early, none stuck.

LANEWAY_GRAPHS and LANEWAY_GRAPH_NODES set how many graphs, and how large the largest are;
LANEWAY_GRAPH_SEED which ones. All run at once, on one server; one more has a parent of thousands.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from laneway import NewMessage, Queue
from laneway.client.shared.flows import AddedNode
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from laneway.flow import When
from tests.flows.ledgers import Ledger

GRAPHS = int(os.environ.get("LANEWAY_GRAPHS", "12"))
NODES = int(os.environ.get("LANEWAY_GRAPH_NODES", "60"))
SEED = int(os.environ.get("LANEWAY_GRAPH_SEED", "7"))
PROCESSES = 3
ATTEMPTS = 1_000_000  # a killed worker costs one
CHOICES: tuple[When, ...] = ("completed", "completed", "completed", "failed", "ended")
_numbers = count(1)
LONG = pytest.mark.skipif(
    "LANEWAY_GRAPHS" not in os.environ, reason="the same on another database: make flow-graphs"
)

pytestmark = [
    pytest.mark.timeout(240 + GRAPHS * NODES / 2),
    pytest.mark.repeats("starts and kills processes; cases and interleavings are quick"),
]


def _publish(queue: Queue, rng: random.Random, name: str) -> int:
    with queue.flow(name, channel=f"tenant {rng.randrange(3)}") as flow:
        nodes: list[AddedNode] = []
        # As many small ones as large ones, by their digits.
        for number in range(round(NODES ** rng.random())):
            most = min(len(nodes), rng.choice([1, 2, 2, 3, 50]))
            after = rng.sample(nodes, rng.randint(0 if number < 4 else 1, most)) if nodes else []
            when: When = rng.choice(CHOICES) if after else "completed"
            adds = rng.randint(1, 5) if rng.random() < 0.1 else 0
            priority = rng.randrange(3)
            message = NewMessage({"adds": adds}, priority=priority, max_attempts=ATTEMPTS)
            nodes.append(flow.add(message, after=after, when=when))
    assert flow.id is not None
    return flow.id


def _publish_wide(queue: Queue, children: int) -> int:
    """One parent of many children, which its end decides in parts, and one that comes after all."""
    with queue.flow("wide") as flow:
        parent = flow.add({}, max_attempts=ATTEMPTS)
        nodes = [
            flow.add({}, after=parent, when=CHOICES[n % 5], max_attempts=ATTEMPTS)
            for n in range(children)
        ]
        flow.add({}, after=nodes, when="ended", max_attempts=ATTEMPTS)
    assert flow.id is not None
    return flow.id


def test_on_postgresql(tmp_path: Path) -> None:
    with EmbeddedPostgres(version=18) as server:

        def restart() -> None:
            server.kill()
            server.start()

        _run(server.create_database("graphs"), tmp_path, restart, wide=5_500)
    found = [path.read_text() for path in tmp_path.glob("deadlock*")]
    assert found == []


@LONG
def test_on_mariadb(tmp_path: Path) -> None:
    with EmbeddedMariaDB() as server:

        def restart() -> None:
            server.kill()
            server.start()

        _run(server.create_database("graphs"), tmp_path, restart, wide=5_500)


@LONG
def test_on_sqlite(tmp_path: Path) -> None:
    _run(f"sqlite:///{tmp_path / 'graphs.db'}", tmp_path, lambda: None, wide=5_500)


def _run(url: str, folder: Path, restart: Callable[[], None], wide: int) -> None:
    rng = random.Random(SEED)
    with Queue(url, upkeep_every=None) as queue, closing(Ledger(url)) as ledger:
        queue.install()
        ledger.create()
        _publish_wide(queue, wide)
        flows = [_publish(queue, rng, f"graph {n}") for n in range(GRAPHS)]
    processes = [_start(url, folder) for _ in range(PROCESSES)]
    try:
        for kills in count(1):
            time.sleep(rng.uniform(0.5, 1.5))
            if not _operate(url, rng, flows[-1] if kills == 3 else None) and kills > 4:
                break
            if kills % 3 == 2:
                restart()
            number = rng.randrange(len(processes))
            processes[number].kill()
            processes[number].wait()
            processes[number] = _start(url, folder)
    finally:
        (folder / "end").touch()
    assert [process.wait(60) for process in processes] == [0] * PROCESSES
    with closing(Ledger(url)) as ledger:
        wrong, nodes = ledger.wrong(), ledger.nodes()
    print(f"{GRAPHS + 1} graphs, {nodes} nodes, {kills} kills")  # noqa: T201
    assert wrong == []


def _start(url: str, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [url, f"p{next(_numbers)}", str(folder / "end")]
    return subprocess.Popen([sys.executable, "-m", "tests.flows.graph_process", *arguments])


def _operate(url: str, rng: random.Random, cancelled: int | None) -> int:
    """Redrives or discards dead letters, cancels a flow; answers how many flows are not done."""
    with Queue(url, upkeep_every=None) as queue, closing(Ledger(url)) as ledger:
        letters = ledger.dead()
        rng.shuffle(letters)
        for start in range(0, len(letters), 50):
            verb = rng.choice([queue.dead_letters.redrive, queue.dead_letters.discard])
            verb(letters[start : start + rng.choice([1, 50])])
        if cancelled is not None:
            queue.flows.cancel(cancelled)
        states = [flow.state for flow in queue.flows.list(limit=10_000)]
        return sum(state in ("running", "dead") for state in states)
