"""Random graphs under kill -9 of workers and of the server: every node once, none too early, none
stuck.

LANEWAY_GRAPHS and LANEWAY_GRAPH_NODES set how many graphs, and how large the largest are.
"""

import os
import random
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import psycopg
import pytest

from laneway import Queue
from laneway.client.shared.flow_nodes import AddedNode
from laneway.dev.embedded import EmbeddedPostgres
from tests.interleavings.invariants import violations

GRAPHS = int(os.environ.get("LANEWAY_GRAPHS", "12"))
NODES = int(os.environ.get("LANEWAY_GRAPH_NODES", "60"))
PROCESSES = 3
ATTEMPTS = 1_000_000  # none dies: a killed worker costs an attempt
_numbers = count(1)
_OPEN = "select count(*) from laneway.flow_v1 where state = 'running'"


def _publish(queue: Queue, rng: random.Random, name: str) -> int:
    """Answers how many nodes it will have."""
    total = 0
    with queue.flow(name, channel=f"tenant {rng.randrange(3)}") as flow:
        nodes: list[AddedNode] = []
        for number in range(rng.randint(1, NODES)):
            most = min(len(nodes), rng.choice([1, 2, 2, 3, 50]))
            after = rng.sample(nodes, rng.randint(0 if number < 4 else 1, most)) if nodes else []
            adds = rng.randint(1, 5) if rng.random() < 0.1 else 0
            payload = {"adds": adds}
            node = flow.add(payload, after=after, priority=rng.randrange(3), max_attempts=ATTEMPTS)
            nodes.append(node)
            total += 1 + (adds + 1 if adds else 0)
    return total


def _start(url: str, folder: Path) -> subprocess.Popen[bytes]:
    arguments = [url, f"p{next(_numbers)}", str(folder / "end")]
    return subprocess.Popen([sys.executable, "-m", "tests.flows.graph_process", *arguments])


@pytest.mark.timeout(120 + GRAPHS * NODES / 20)
@pytest.mark.repeats("takes a server of its own and kills it; interleavings and cases are quick")
def test_every_node_once_and_none_too_early(tmp_path: Path) -> None:
    rng = random.Random(7)
    with EmbeddedPostgres(version=18) as server:
        url = server.create_database("graphs")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            with psycopg.connect(url, autocommit=True) as own:
                own.execute("create table ledger (node bigint primary key, early boolean)")
            expected = sum(_publish(queue, rng, f"graph {n}") for n in range(GRAPHS))
        processes = [_start(url, tmp_path) for _ in range(PROCESSES)]
        try:
            _kill_until_done(server, url, processes, rng, tmp_path)
        finally:
            (tmp_path / "end").touch()
        assert [process.wait(60) for process in processes] == [0] * PROCESSES
        with psycopg.connect(url, autocommit=True) as own:
            assert violations(own) == []
            done = own.execute("select count(*), count(*) filter (where early) from ledger")
            assert done.fetchall() == [(expected, 0)]
            states = own.execute("select state, count(*) from laneway.flow_v1 group by 1")
            assert states.fetchall() == [("completed", GRAPHS)]
            assert own.execute("select count(*) from laneway.flow_held").fetchall() == [(0,)]
        assert list(tmp_path.glob("deadlock*")) == []


def _kill_until_done(
    server: EmbeddedPostgres,
    url: str,
    processes: list[subprocess.Popen[bytes]],
    rng: random.Random,
    folder: Path,
) -> None:
    kills = 0
    while True:
        time.sleep(rng.uniform(0.5, 1.5))
        with psycopg.connect(url, autocommit=True) as own:
            ((left,),) = own.execute(_OPEN).fetchall()
        if not left and kills >= 2:
            return
        kills += 1
        if kills % 3 == 2:
            server.kill()
            server.start()
        else:
            number = rng.randrange(len(processes))
            processes[number].kill()
            processes[number].wait()
            processes[number] = _start(url, folder)
