"""No statement of a verb reads a table from end to end; views can be read."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from laneway import Queue
from laneway.drivers.placeholders import numbered
from laneway.engines.sqlite.base import STATEMENTS, statement

# What operators ask reads what it shows; install and diagnose are rare.
LISTS = {
    "count_dead_letters",
    "dead_letter_ids",
    "counted_queues",
    "dead_letters",
    "diagnose_file",
    "diagnose_leases",
    "flows",
    "history_since",
    "messages",
    "messages_dead",
    "messages_leased",
    "migration_exists",
    "migration_number",
    "schedules",
    "subscriptions",
    "sum_dead_counts",
    "totals",
    "uninstall",
}
# One row, or a few: who listens and what they have not read, schedules of all queues, lakes.
SMALL = {
    "state",
    "listener",
    "mail",
    "schedule",
    "migration",
    "lake_sure",
    "fold",
    "history_gap",
    "pause",
    "worker",
    "cancel_request",
    "kind_count",
    "fair_queue",
    "kind_queue",
    # By names that people set, and by the sets of them that something waits for; lanes and
    # messages behind them are not small.
    "shared_limit",
    "limit_queue",
    "limit_clock",
}
# Reads on from one end and stops after some rows; or asks for messages among those under way.
BOUNDED = {
    ("add_cancel_requests", "lease"),
    ("audit", "audit"),
    ("delete_old_audit", "audit"),
    ("upkeep_needed", "audit"),
    ("count_needed", "channel"),
    ("count_needed", "message"),
    ("last_depths", "depth"),
    ("leased_channels", "lease"),
    ("leased_ids", "lease"),
    ("leases_of_messages", "lease"),
    ("messages_of_channels", "lease"),
    ("kind_counts", "history"),
    ("undecided_rows", "flow_undecided"),
    ("kind_counts", "kind_depth"),
    ("queue_names", "dead_count"),
    ("recount_kinds", "message"),  # recount_needed has found that there are few
    ("recount_needed", "message"),
    ("fold_position", "history"),
    ("open_gap", "claim"),
    ("waiting_work", "claim"),
    ("upkeep_needed", "history"),
    ("delete_old_history", "history"),
    ("message", "lease"),
}
SCAN = re.compile(r"^SCAN (?:TABLE )?(\S+)")
WRITE = re.compile(r"(?:\s|--[^\n]*\n)*(?:delete|update)\b")
ALIASES = re.compile(r'"laneway_(\w+)"(?: (?:as )?([a-z])\b)?')


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "jobs.db"
    with Queue(f"sqlite:///{path}") as queue:
        queue.install()
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.mark.parametrize("name", sorted(set(STATEMENTS) - LISTS))
def test_a_verb_scans_no_table(connection: sqlite3.Connection, name: str) -> None:
    if name == "migration_note":  # part of a script, with literals
        return
    sql = statement(name, "laneway")
    tables = {alias or f"laneway_{table}": table for table, alias in ALIASES.findall(sql)}
    for detail in explain(connection, sql):
        if found := SCAN.match(detail):
            table = tables.get(found[1]) or found[1].removeprefix("laneway_")
            by_index = "USING" in detail and "INDEX" in detail
            known = table in SMALL or table not in set(tables.values())
            known = known or (name, table) in BOUNDED
            assert known or by_index, f"{name}: {detail}"


@pytest.mark.parametrize(
    "name", sorted(name for name in STATEMENTS if WRITE.match(STATEMENTS[name]))
)
def test_what_a_write_changes_is_read_once(connection: sqlite3.Connection, name: str) -> None:
    """An inner select that means a column of the outer row is read again for each of its rows."""
    for detail in explain(connection, statement(name, "laneway")):
        assert "CORRELATED LIST" not in detail, f"{name}: {detail}"


def explain(connection: sqlite3.Connection, sql: str) -> list[str]:
    count = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    values = ["[]"] * count
    rows = connection.execute(f"explain query plan {numbered(sql)}", values).fetchall()
    return [detail for *_, detail in rows]


def test_the_views_can_be_read(url: str, path: Path) -> None:
    with Queue(url) as queue, closing(sqlite3.connect(path)) as eyes:
        queue.install()
        queue.publish("waiting", channel="a")
        queue.publish("later", channel="a", delay=timedelta(hours=1))
        queue.publish_many(["dead", "leased", "done"], channel="b")
        for message in queue.claim(10):
            if message.text() == "done":
                message.complete()
            if message.text() == "dead":
                message.fail()
            if message.text() == "waiting":
                message.give_back()
        named = "select name from sqlite_master where type = 'view'"
        for (name,) in eyes.execute(named).fetchall():
            assert eyes.execute(f'select * from "{name}"').description  # noqa: S608
        numbers = eyes.execute(
            "select channel, waiting, scheduled, leased, dead from laneway_channel_stats_v1"
        ).fetchall()
        assert numbers == [("a", 1, 1, 0, 0), ("b", 0, 0, 1, 1)]
        states = eyes.execute("select state from laneway_message_v1 order by id").fetchall()
        assert states == [("waiting",), ("scheduled",), ("leased",)]
        (outcomes,) = eyes.execute(
            "select group_concat(outcome) from laneway_history_v1 where terminal or dead"
        ).fetchone()
        assert sorted(outcomes.split(",")) == ["completed", "failed"]
