"""bench and demo: they measure and show in places of their own, and leave nothing behind."""

import json
import signal
import time

import psycopg
import pytest

from laneway.dev.embedded import EmbeddedPostgres
from tests.cli.commands import Cli

_SCHEMAS = "select count(*) from pg_namespace where nspname like 'laneway_bench%'"


@pytest.fixture
def bench(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Cli:
    return Cli(server.create_database(request.node.name), "laneway")


def schemas(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(_SCHEMAS).fetchone()
    assert row is not None
    return int(row[0])


def test_bench_answers_rates_and_drops_its_schema(bench: Cli) -> None:
    (rates,) = bench.json("bench", "--yes", "--messages", "300", "--batch", "50")
    assert set(rates) == {
        *("messages", "batch", "payload_bytes"),
        *("publish_single", "publish_batch", "claim_complete"),
    }
    assert min(rates.values()) > 0
    assert "claim_complete\t" in bench.run("bench", "--yes", "--messages", "100").stdout
    assert schemas(bench.url) == 0


def test_bench_asks_first(bench: Cli) -> None:
    done = bench.run("bench", code=2)
    assert "then drop it?" in done.stderr and "--yes" in done.stderr
    assert schemas(bench.url) == 0


def test_bench_cleans_up_when_it_is_stopped(bench: Cli) -> None:
    process = bench.process("bench", "--yes", "--messages", "1000000", "--batch", "10")
    end = time.monotonic() + 30
    while not schemas(bench.url):
        assert time.monotonic() < end and process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors
    assert schemas(bench.url) == 0


def test_version_and_sql(bench: Cli) -> None:
    (found,) = bench.json("version")
    assert found["version"] == bench.run("version").stdout.strip()
    assert json.loads(bench.run("install", "--json").stdout)["schema"] == "laneway"


def test_install_with_roles(bench: Cli) -> None:
    (found,) = bench.json("install", "--roles", "--role-prefix", "cli")
    roles = ["cli_producer", "cli_consumer", "cli_viewer", "cli_admin"]
    assert (found["schema"], found["roles"]) == ("laneway", roles)
    shown = bench.run("install", "--roles", "--role-prefix", "cli").stderr
    assert 'GRANT "cli_producer" TO app;' in shown


def test_sql_of_roles_and_of_other_databases(bench: Cli) -> None:
    text = bench.run("sql", "--roles").stdout
    assert 'grant "laneway_producer" to "laneway_consumer"' in text
    assert 'create role "x_viewer"' in bench.run("sql", "--roles", "--role-prefix", "x").stdout
    tables = bench.run("sql", "--dialect", "sqlite").stdout
    assert "create table" in tables.lower() and "create schema" not in tables
    assert bench.run("sql", "--url", "sqlite:///x.db").stdout == tables
    assert (
        "roles are for PostgreSQL only"
        in bench.run("sql", "--roles", "--dialect", "sqlite", code=2).stderr
    )
