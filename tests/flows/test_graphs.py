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

from laneway import NewMessage, Queue
from laneway.client.shared.flow_nodes import AddedNode
from laneway.dev.embedded import EmbeddedPostgres
from laneway.flow import When
from tests.interleavings.invariants import violations

GRAPHS = int(os.environ.get("LANEWAY_GRAPHS", "12"))
NODES = int(os.environ.get("LANEWAY_GRAPH_NODES", "60"))
PROCESSES = 3
ATTEMPTS = 1_000_000  # a killed worker costs one
CHOICES: tuple[When, ...] = ("completed", "completed", "completed", "failed", "ended")
_numbers = count(1)
_OPEN = "select count(*) from laneway.flow_v1 where state in ('running', 'dead')"
_DEAD = "select id from laneway.dead"
_LEFT = "select id, state from laneway.flow_node where state in ('held', 'live', 'dead')"
# Each that completed is in the ledger, and no other.
_WRONG = """
select n.id, n.state, l.node from laneway.flow_node n full join ledger l on l.node = n.id
where (n.state = 'completed') is distinct from (l.node is not null)
"""


def _publish(queue: Queue, rng: random.Random, name: str) -> int:
    with queue.flow(name, channel=f"tenant {rng.randrange(3)}") as flow:
        nodes: list[AddedNode] = []
        for number in range(rng.randint(1, NODES)):
            most = min(len(nodes), rng.choice([1, 2, 2, 3, 50]))
            after = rng.sample(nodes, rng.randint(0 if number < 4 else 1, most)) if nodes else []
            when: When = rng.choice(CHOICES) if after else "completed"
            adds = rng.randint(1, 5) if rng.random() < 0.1 else 0
            priority = rng.randrange(3)
            message = NewMessage({"adds": adds}, priority=priority, max_attempts=ATTEMPTS)
            nodes.append(flow.add(message, after=after, when=when))
    assert flow.id is not None
    return flow.id


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
            flows = [_publish(queue, rng, f"graph {n}") for n in range(GRAPHS)]
        processes = [_start(url, tmp_path) for _ in range(PROCESSES)]
        try:
            _kill_until_done(server, url, processes, rng, tmp_path, flows[-1])
        finally:
            (tmp_path / "end").touch()
        assert [process.wait(60) for process in processes] == [0] * PROCESSES
        with psycopg.connect(url, autocommit=True) as own:
            assert violations(own) == []
            early = own.execute("select node from ledger where early")
            assert early.fetchall() == []
            assert own.execute(_LEFT).fetchall() == []
            assert own.execute(_WRONG).fetchall() == []
            assert own.execute("select count(*) from laneway.flow_held").fetchall() == [(0,)]
        assert list(tmp_path.glob("deadlock*")) == []


def _kill_until_done(
    server: EmbeddedPostgres,
    url: str,
    processes: list[subprocess.Popen[bytes]],
    rng: random.Random,
    folder: Path,
    cancelled: int,
) -> None:
    for kills in count(1):
        time.sleep(rng.uniform(0.5, 1.5))
        if not _operate(url, rng, cancelled if kills == 3 else None) and kills > 4:
            return
        if kills % 3 == 2:
            server.kill()
            server.start()
        else:
            number = rng.randrange(len(processes))
            processes[number].kill()
            processes[number].wait()
            processes[number] = _start(url, folder)


def _operate(url: str, rng: random.Random, cancelled: int | None) -> int:
    """Redrives or discards dead letters, cancels a flow; answers how many flows are not done."""
    with (
        Queue(url, upkeep_every=None) as queue,
        psycopg.connect(url, autocommit=True) as own,
    ):
        for (letter,) in own.execute(_DEAD).fetchall():
            if rng.random() < 0.5:
                queue.dead_letters.redrive([letter])
            else:
                queue.dead_letters.discard([letter])
        if cancelled is not None:
            queue.flows.cancel(cancelled)
        ((left,),) = own.execute(_OPEN).fetchall()
        return int(left)
