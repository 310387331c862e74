"""No statement of a verb reads a table from end to end; views can be read."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import Queue
from penstock.drivers.placeholders import numbered
from penstock.engines.sqlite.sqltext import FOLDER, query

# What operators ask reads what it shows; install and examine are rare.
LISTS = {
    "channel_numbers",
    "count_dead_letters",
    "dead_letter_ids",
    "dead_letters",
    "examine_leases",
    "examine_place",
    "history_since",
    "messages",
    "messages_dead",
    "messages_leased",
    "migration_exists",
    "migration_number",
    "policies",
    "schedules",
    "subscriptions",
    "totals",
    "uninstall",
}
# One row, or a few: who listens and what they have not read, schedules of all queues, lakes.
SMALL = {"state", "listener", "mail", "schedule", "migration", "lake_sure"}
# Reads on from one end and stops after some rows; or asks for one message, among those under way.
BOUNDED = {("chores", "history"), ("forget_history", "history"), ("message", "lease")}
NAMES = sorted(file.name.removesuffix(".sql") for file in (FOLDER / "queries").iterdir())
SCAN = re.compile(r"^SCAN (?:TABLE )?(\S+)")
ALIASES = re.compile(r'"penstock_(\w+)"(?: (?:as )?([a-z])\b)?')


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "jobs.db"
    with Queue(f"sqlite:///{path}") as queue:
        queue.install()
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LISTS])
def test_a_verb_scans_no_table(connection: sqlite3.Connection, name: str) -> None:
    sql = query(name, "penstock")
    if name == "migration_note":  # part of a script, with literals
        return
    count = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    values = ["[]"] * count
    rows = connection.execute(f"explain query plan {numbered(sql)}", values).fetchall()
    tables = {alias or f"penstock_{table}": table for table, alias in ALIASES.findall(sql)}
    for *_, detail in rows:
        if found := SCAN.match(detail):
            table = tables.get(found[1]) or found[1].removeprefix("penstock_")
            by_index = "USING" in detail and "INDEX" in detail
            known = table in SMALL or table not in set(tables.values())
            known = known or (name, table) in BOUNDED
            assert known or by_index, f"{name}: {detail}"


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
            "select channel, waiting, scheduled, leased, dead from penstock_channel_numbers_v1"
        ).fetchall()
        assert numbers == [("a", 1, 1, 0, 0), ("b", 0, 0, 1, 1)]
        states = eyes.execute("select state from penstock_message_v1 order by id").fetchall()
        assert states == [("waiting",), ("scheduled",), ("leased",)]
        (outcomes,) = eyes.execute(
            "select group_concat(outcome) from penstock_history_v1 where terminal or dead"
        ).fetchone()
        assert sorted(outcomes.split(",")) == ["completed", "failed"]
