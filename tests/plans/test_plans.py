"""Every hot statement goes by index or row address, whatever the statistics say, and costs what it
did: rows, index entries and pages per message against baseline.json.

The tables are never analysed, and filled while autovacuum is off. One session has planned all
verbs while they were empty, another one comes when they are full. `make plans-baseline` writes the
baseline anew.
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import install_sql
from tests.plans.bench import QUIET, SIZE, Bench, Cost, load, measure
from tests.stores import POSTGRESQL_SERVERS

BASELINE = Path(__file__).with_name("baseline.json")
WRITE = os.environ.get("LANEWAY_WRITE_BASELINE") == "1"
# How news and turns meet moves a claim by some percent from run to run; a scan is worth multiples.
TOLERANCE = 1.30
# Counts are whole pages of a batch of 100: one more or less is no news.
SLACK = 0.05


@pytest.fixture(scope="module", params=POSTGRESQL_SERVERS)
def benches(request: pytest.FixtureRequest) -> Iterator[tuple[int, Bench, Bench]]:
    server: EmbeddedPostgres = request.getfixturevalue(request.param)
    url = server.create_database("laneway_plans")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(install_sql().encode())
        version = connection.info.server_version // 10_000
        connection.execute(QUIET.encode())
    with closing(Bench(url)) as early, closing(Bench(url)) as late:
        early.publish(5000)
        measure(early, 2)
        load(early)
        yield version, early, late


@pytest.mark.timeout(3600 if SIZE > 100_000 else 120)
def test_no_table_is_read_from_end_to_end(benches: tuple[int, Bench, Bench]) -> None:
    version, early, late = benches
    costs = {"planned when empty": measure(early), "planned when full": measure(late)}
    scanned = {
        (when, verb): cost.scanned
        for when, found in costs.items()
        for verb, cost in found.items()
        if cost.scanned
    }
    assert not scanned
    if WRITE:
        _write(version, *costs.values())
    known = json.loads(BASELINE.read_text())
    baseline = known[min(known, key=lambda one: abs(int(one) - version))]
    dearer = [
        f"{verb}, {when}: {what} {found:.2f} a message, was {allowed:.2f}"
        for when, measured in costs.items()
        for verb, cost in measured.items()
        for what, allowed in baseline[verb].items()
        if (found := getattr(cost, what)) > allowed * TOLERANCE + SLACK
    ]
    assert not dearer, "\n".join(dearer)


def _write(version: int, early: dict[str, Cost], late: dict[str, Cost]) -> None:
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    known[str(version)] = {
        verb: {
            what: round(max(getattr(early[verb], what), getattr(late[verb], what)), 2)
            for what in ("rows", "entries", "buffers")
        }
        for verb in early
    }
    BASELINE.write_text(json.dumps(known, indent=2) + "\n")
