"""What somebody dropped from the schema is named, and put back where no data is needed."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql
import pytest

from laneway import Queue
from laneway.engines.mysql.schema import shape as mysql_shape
from laneway.engines.postgresql.schema import shape as postgresql_shape
from laneway.engines.sqlite.schema import shape as sqlite_shape
from laneway.operator import VIEWER, Operator, Principal

_numbers = count(1)
SERVERS = {"postgresql": "server", "mysql": "mariadb", "sqlite": "sqlite_files"}
SHAPES: dict[str, Callable[[str], Any]] = {
    "postgresql": postgresql_shape,
    "mysql": mysql_shape,
    "sqlite": sqlite_shape,
}
# Each: what is done, and what diagnose() must name.
DAMAGE = {
    "postgresql": [
        ('drop index "laneway".message_order', "index message_order"),
        ('drop view "laneway".history_v1 cascade', "view history_v1"),
        ('drop function "laneway".waiting_work_v1 cascade', "function waiting_work_v1"),
        (
            'alter table "laneway".setting drop column audit_days cascade',
            "column setting.audit_days",
        ),
        ('drop table "laneway".pause cascade', "table pause"),
        ('drop sequence "laneway".schedule_revision cascade', "sequence schedule_revision"),
        (
            'create or replace function "laneway".write_time_v1(p_now timestamptz) '
            "returns timestamptz language sql as 'select now()'",
            "function write_time_v1, which was changed",
        ),
        (
            'alter table "laneway".setting alter column history_days set default 1',
            "column setting.history_days, which was changed",
        ),
        (
            'alter table "laneway".message alter column attempt drop default',
            "column message.attempt, which was changed",
        ),
        (
            'alter table "laneway".setting drop constraint setting_history_days_check',
            "check (history_days >= 1) of setting",
        ),
        (
            'alter table "laneway".channel drop constraint channel_weight_check, '
            "add check (weight between 0.01 and 5000)",
            "check (weight between 0.01 and 1000) of channel",
        ),
        (
            "do $$ begin execute 'create or replace view laneway.dead_letter_v1 as ' "
            "|| rtrim(pg_get_viewdef('laneway.dead_letter_v1'::regclass), ';') "
            "|| ' where queue <> ''hidden'''; end $$",
            "view dead_letter_v1, which was changed",
        ),
    ],
    "mysql": [
        ("drop index message_order on laneway_message", "index message_order"),
        ("drop view laneway_history_v1", "view history_v1"),
        ("alter table laneway_setting drop column audit_days", "column setting.audit_days"),
        ("drop table laneway_pause", "table pause"),
        (
            "alter table laneway_setting alter column history_days set default 1",
            "column setting.history_days, which was changed",
        ),
        (
            "create or replace view laneway_history_v1 as select * from laneway_history",
            "view history_v1, which was changed",
        ),
    ],
    "sqlite": [
        ("drop index laneway_history_message", "index history_message"),
        ("drop view laneway_history_v1", "view history_v1"),
        ("drop trigger laneway_channel_in_use", "trigger channel_in_use"),
        ("drop table laneway_pause", "table pause"),
        (
            "drop view laneway_history_v1; create view laneway_history_v1 as "
            "select * from laneway_history",
            "view history_v1, which was changed",
        ),
        (
            "drop trigger laneway_channel_in_use; create trigger laneway_channel_in_use "
            "before delete on laneway_channel begin select 1; end",
            "trigger channel_in_use, which was changed",
        ),
    ],
}


@pytest.fixture(params=SERVERS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(dialect: str, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue(SERVERS[dialect])
    made: str = server.create_database(f"drift {next(_numbers)} where")
    return made


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        yield queue


def execute(url: str, dialect: str, *statements: str) -> None:
    for statement in statements:
        if dialect == "postgresql":
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(statement)
        elif dialect == "mysql":
            parts = urlsplit(url)
            with pymysql.connect(
                host=parts.hostname or "",
                port=parts.port or 0,
                user=parts.username or "",
                password=parts.password or "",
                database=unquote(parts.path[1:]),
            ) as session:
                session.cursor().execute(statement)
        else:
            path = urlsplit(url).path.removeprefix("/")
            file = sqlite3.connect("/" + path.removeprefix("/"))
            file.executescript(statement)
            file.commit()
            file.close()


def drift(queue: Queue) -> Any:
    (found,) = [finding for finding in queue.diagnose() if finding.check == "shape"]
    return found


def test_a_new_schema_is_all_that_is_expected_and_nothing_else(queue: Queue, dialect: str) -> None:
    """So every form in which the migrations are written is understood."""
    assert drift(queue).level == "ok", drift(queue)
    plan = queue.database.engine.schema._found()  # type: ignore[attr-defined]
    found = queue.database.run(plan)
    expected = SHAPES[dialect]("laneway")
    known = {key for key in found if key not in expected and key[0] != "check"}
    # What belongs to a primary key or a unique constraint, and the partitions of days.
    extra = {
        (kind, name)
        for kind, name in known
        if not name.endswith(("_pkey", "_key", "_seq")) and "history_" not in name
    }
    assert not extra


def test_pages_look_at_a_whole_schema_once_a_minute(queue: Queue, url: str, dialect: str) -> None:
    """And at one that is not, every time: what was put back shows at once."""
    operator = Operator(queue, Principal("ann", VIEWER))

    def seen() -> list[str]:
        return [finding.level for finding in operator.diagnose() if finding.check == "shape"]

    assert seen() == ["ok"]
    execute(url, dialect, DAMAGE[dialect][0][0])
    assert seen() == ["ok"]  # a moment ago it was whole
    assert drift(queue).level == "fail"  # whoever asks the client is told what is
    assert seen() == ["fail"]
    queue.repair()
    assert seen() == ["ok"]


def test_what_is_dropped_is_named_and_put_back(queue: Queue, url: str, dialect: str) -> None:
    queue.publish(1, channel="kept")
    for statement, name in DAMAGE[dialect]:
        execute(url, dialect, statement)
        found = drift(queue)
        assert found.level == "fail"
        assert name in found.message, statement
        assert "laneway upgrade --repair" in (found.fix or "")
        repairs = queue.repair()
        assert name in [one.part for one in repairs]
        assert all(one.done for one in repairs), repairs
        assert drift(queue).level == "ok", (statement, drift(queue))
        assert not queue.repair()
    queue.publish(2)
    claimed = list(queue.claim(10))
    assert len(claimed) == 2
    queue.complete(claimed)


def test_what_users_added_is_no_damage(queue: Queue, url: str, dialect: str) -> None:
    table = '"laneway".message' if dialect == "postgresql" else "laneway_message"
    prefix = '"laneway".' if dialect == "postgresql" else "laneway_"
    execute(
        url,
        dialect,
        f"create index sorted_by_users on {table} (priority)",
        f"create table {prefix}of_users (a int)",
        f"alter table {table} add column of_users int",
    )
    assert drift(queue).level == "ok"
    assert not queue.repair()
    queue.publish(1)


def test_what_cannot_be_put_back_without_data_is_said(queue: Queue, url: str, dialect: str) -> None:
    table = '"laneway".subscription' if dialect == "postgresql" else "laneway_subscription"
    prefix = '"laneway".' if dialect == "postgresql" else "laneway_"
    execute(
        url,
        dialect,
        f"drop table {table}" + (" cascade" if dialect == "postgresql" else ""),
        f"create table {prefix}subscription (a int)",
    )
    left = [one.part for one in queue.repair() if not one.done]
    assert "column subscription.topic" in left
