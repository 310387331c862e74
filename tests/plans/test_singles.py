"""What a claim reads does not grow with a backlog of single messages, however they lie."""

from contextlib import closing
from statistics import median

import psycopg
import pytest

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import install_sql
from tests.plans.bench import Bench, draft

MESSAGES = 1000
CLAIMS = 16
LIMIT = 8
# A wake is read by a few claims before it is consumed. To read all of them would be twice as many.
ENTRIES = 60


@pytest.mark.repeats("test_plans counts what a claim reads")
@pytest.mark.parametrize("each", [1, 4, 9])
@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "one after the other"])
def test_a_claim_reads_a_few(server: EmbeddedPostgres, each: int, in_turn: bool) -> None:
    url = server.create_database(f"singles {each} {in_turn}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(install_sql().encode())
    channels = MESSAGES // each
    with closing(Bench(url)) as bench:
        for turn in range(MESSAGES):
            number = turn % channels if in_turn else turn // each
            bench.publish_drafts([draft(0)._replace(channel=f"c{number}")])
        found = []
        for _ in range(CLAIMS):
            bench.claim(LIMIT)
            found.append(bench.last.entries)
    assert median(found) < ENTRIES


def test_two_hundred_priorities_wait_in_one_channel(server: EmbeddedPostgres) -> None:
    """A claim reads the highest ones that it needs; all of them only when the longest waiting is
    owed a start, which is one in ten."""
    url = server.create_database("priorities")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(install_sql().encode())
    with closing(Bench(url)) as bench:
        for _ in range(3):
            drafts = [draft(0)._replace(channel="a", priority=n) for n in range(201)]
            bench.publish_drafts(drafts)
        singles, batches = [], []
        for _ in range(40):
            bench.claim(1)
            singles.append(bench.last)
        for _ in range(20):
            bench.claim(10)
            batches.append(bench.last)
    # 33 and 77 pages a message; reading all priorities at every start took 1,195 for a single one.
    assert median(cost.buffers for cost in singles) < 100
    assert median(cost.buffers for cost in batches) < 150


def test_channels_with_a_slot_again_are_visited_when_their_turn_comes(
    server: EmbeddedPostgres,
) -> None:
    """Not all of them by the claim that reads of it: their tokens would be rewritten twice."""
    url = server.create_database("plans slots")
    with Queue(url, upkeep_every=None) as queue, psycopg.connect(url, autocommit=True) as other:
        queue.install()
        for number in range(60):
            queue.channel(f"c{number}").limit(concurrency=1)
        queue.publish_many([NewMessage(n, channel=f"c{n % 60}") for n in range(600)])
        visits = []
        for _ in range(18):
            ((before,),) = other.execute("select coalesce(sum(version), 0) from laneway.token")
            claim = queue.claim(20)
            ((after,),) = other.execute("select sum(version) from laneway.token")
            visits.append(after - before)
            assert len({message.channel for message in claim}) == 20
            queue.complete(claim)
    assert set(visits) == {20}, visits
