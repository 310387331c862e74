"""doctor: what could go wrong, and has."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres, PgBouncer, pgbouncer_binary
from laneway.engines.postgresql.diagnose import (
    PostgresqlServer,
    SnapshotHolder,
    TableStatistics,
    durability_findings,
    server_findings,
    snapshot_finding,
    table_findings,
)
from laneway.inspection import Finding
from tests.cli.commands import Cli

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WELL = PostgresqlServer(
    version="18.0",
    standby=False,
    synchronous_commit="on",
    fsync="on",
    full_page_writes="on",
    wanted_standbys="",
    standbys=0,
    synchronous=0,
    idle_slots=0,
    autovacuum=True,
    notifications=0.0,
    connections=5,
    max_connections=100,
    prepared=0,
    oldest_prepared=None,
    prepared_name=None,
    now=NOW,
)


@pytest.fixture(scope="module")
def healthy() -> Iterator[EmbeddedPostgres]:
    """As a server should be run."""
    with EmbeddedPostgres(settings={"max_prepared_transactions": 2}) as running:
        yield running


@pytest.fixture
def well(healthy: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[Cli]:
    url = healthy.create_database(request.node.name)
    with Queue(url, schema="laneway") as queue:
        queue.install()
    yield Cli(url, "laneway")


def findings(cli: Cli, code: int) -> dict[str, dict[str, Any]]:
    return {finding["check"]: finding for finding in cli.json("doctor", code=code)}


def test_all_is_well(well: Cli) -> None:
    found = findings(well, 0)
    assert {finding["level"] for finding in found.values()} == {"ok"}
    assert {
        *("versions", "connection", "clock", "server", "synchronous_commit", "fsync"),
        *("full_page_writes", "replication", "prepared transactions", "notification queue"),
        *("autovacuum", "oldest snapshot", "schema", "autovacuum of our tables", "dead rows"),
        *("upkeep", "pooler", "paused channels", "connections", "schedules"),
    } <= set(found)
    assert "No problems found." in well.run("doctor").stderr


def test_a_careless_server_fails(cli: Cli) -> None:
    found = findings(cli, 1)
    assert found["fsync"]["level"] == found["full_page_writes"]["level"] == "fail"
    assert found["fsync"]["fix"]
    shown = cli.run("doctor", code=1)
    assert (
        "FAIL  fsync" in shown.stdout and "→" in shown.stdout and "Failures found." in shown.stderr
    )


def test_warnings_are_another_code(well: Cli) -> None:
    with psycopg.connect(well.url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(f'alter database "{database}" set synchronous_commit = off'.encode())
    with Queue(well.url) as queue:
        queue.publish_many([1, 2, 3], channel="stuck")
        queue.channel("stuck").pause()
    found = findings(well, 3)
    assert found["synchronous_commit"]["level"] == "warn"
    assert "default/stuck (3)" in found["paused channels"]["message"]


def test_leases_that_nobody_takes_back(well: Cli) -> None:
    late = datetime.now(UTC) - timedelta(minutes=5)
    with Queue(well.url, clock=lambda: late, upkeep_every=None) as queue:
        queue.publish(1)
        queue.claim()
    assert findings(well, 1)["upkeep"]["level"] == "fail"


def test_who_holds_a_snapshot_and_a_prepared_transaction(well: Cli) -> None:
    with psycopg.connect(well.url, application_name="nightly report") as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select 1")
        found = findings(well, 0)
        assert "nightly report" in found["oldest snapshot"]["message"]
    with psycopg.connect(well.url, autocommit=True) as connection:
        connection.execute("begin")
        connection.execute("create table t ()")
        connection.execute("prepare transaction 'forgotten'")
        try:
            assert "'forgotten'" in findings(well, 0)["prepared transactions"]["message"]
        finally:
            connection.execute("rollback prepared 'forgotten'")


def test_autovacuum_turned_off_for_a_table(well: Cli) -> None:
    with psycopg.connect(well.url, autocommit=True) as connection:
        connection.execute("alter table laneway.wake set (autovacuum_enabled = false)")
    found = findings(well, 1)["autovacuum of our tables"]
    assert found["level"] == "fail" and "wake" in found["message"]


def test_what_is_not_installed(well: Cli) -> None:
    found = findings(Cli(well.url, "elsewhere"), 1)
    assert found["schema"]["level"] == "fail" and "install" in found["schema"]["fix"]
    assert "upkeep" not in found and "paused channels" not in found


def test_no_connection_is_a_finding_too() -> None:
    cli = Cli("postgresql://me:canary@127.0.0.1:1/none", "laneway")
    found = findings(cli, 1)
    assert found["connection"]["level"] == "fail" and found["connection"]["fix"]
    assert "canary" not in json.dumps(found)


def test_a_pooler_in_transaction_mode(
    healthy: EmbeddedPostgres, well: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = pgbouncer_binary()
    if binary is None:
        pytest.skip("no PgBouncer on this machine, and none could be fetched")
    name = psycopg.conninfo.conninfo_to_dict(well.url)["dbname"]
    with PgBouncer(binary, "127.0.0.1", healthy.port) as bouncer:
        behind = Cli(bouncer.url(str(name)), "laneway")
        assert findings(behind, 3)["pooler"]["level"] == "warn"
        monkeypatch.chdir(tmp_path)
        (tmp_path / "laneway.toml").write_text("pooler = true\n")
        assert findings(behind, 0)["pooler"]["level"] == "ok"


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({"standby": True}, "server", "fail"),
        ({"synchronous_commit": "off"}, "synchronous_commit", "warn"),
        ({"wanted_standbys": "a"}, "replication", "fail"),
        ({"idle_slots": 1}, "replication", "warn"),
        ({"standbys": 1, "synchronous": 1, "wanted_standbys": "a"}, "replication", "ok"),
        ({"autovacuum": False}, "autovacuum", "fail"),
        ({"notifications": 0.6}, "notification queue", "warn"),
        ({"notifications": 0.95}, "notification queue", "fail"),
        ({"connections": 95}, "connections", "warn"),
        (
            {"prepared": 1, "oldest_prepared": NOW - timedelta(hours=1), "prepared_name": "p"},
            "prepared transactions",
            "warn",
        ),
    ],
)
def test_each_setting_is_judged(change: dict[str, Any], check: str, level: str) -> None:
    server = WELL._replace(**change)
    found = {
        finding.check: finding
        for finding in (*durability_findings(server), *server_findings(server))
    }
    assert found[check].level == level
    assert (found[check].fix is None) == (level == "ok")


def test_old_snapshots_and_dead_rows_are_judged() -> None:
    old = snapshot_finding(SnapshotHolder("process 7 of me", NOW - timedelta(hours=2), 99), NOW)
    assert old.level == "warn" and "2:00:00" in old.message
    assert snapshot_finding(SnapshotHolder("replication slot s", None, 99), NOW).level == "ok"
    dead: list[Finding] = list(
        table_findings([TableStatistics("wake", 10, 5_000_000, False, None)])
    )
    assert [finding.level for finding in dead] == ["ok", "warn"]
    assert "wake 5,000,000" in dead[1].message


def test_without_a_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from laneway.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 2 and "no database given" in done.stderr


def test_schedules_that_nobody_fires(well: Cli) -> None:
    late = datetime.now(UTC) - timedelta(hours=1)
    with Queue(well.url, clock=lambda: late) as queue:
        queue.schedule("hourly", every=timedelta(minutes=5))
    found = findings(well, 1)["schedules"]
    assert found["level"] == "fail" and "default/hourly" in found["message"]


def test_a_viewer_sees_all_but_what_it_may_not(well: Cli) -> None:
    well.run("install", "--roles", "--role-prefix", "doctor")
    with psycopg.connect(well.url, autocommit=True) as connection:
        connection.execute("create role looker login in role doctor_viewer")
    viewer = Cli(well.url.replace("postgres@", "looker@"), "laneway")
    found = findings(viewer, 3)
    assert [check for check, finding in found.items() if finding["level"] != "ok"] == [
        "dead letters",
        "schedules",
    ]
    assert "permission denied" in found["schedules"]["message"]
    stranger = Cli(well.url.replace("postgres@", "stranger@"), "laneway")
    with psycopg.connect(well.url, autocommit=True) as connection:
        connection.execute("create role stranger login")
    assert findings(stranger, 3)["database"]["level"] == "warn"


def test_what_was_given_up_lately_is_named(cli: Cli, queue: Queue) -> None:
    queue.publish("x", kind="receipt")
    queue.claim()[0].fail("no such customer")
    found = findings(cli, 1)  # its server does without fsync
    assert found["dead letters"]["level"] == "warn"
    assert "default, receipt: no such customer" in found["dead letters"]["message"]
