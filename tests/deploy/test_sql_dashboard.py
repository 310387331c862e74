"""The Grafana dashboard over PostgreSQL: every statement runs on a real schema."""

import re

import psycopg
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from tests.deploy.test_dashboards import dashboard, targets

SCHEMA = "laneway"


@pytest.fixture(scope="module")
def installed(server: EmbeddedPostgres) -> str:
    url = server.create_database("grafana")
    with Queue(url) as queue:
        queue.install()
        for number in range(5):
            queue.publish(number, kind="mail")
        first, second, *_ = queue.claim(4)
        first.complete()
        second.fail("no")
        for _ in range(20):
            queue.upkeep()
    return url


def runnable(sql: str) -> str:
    """As Grafana sends it: with its macros and variables replaced."""
    sql = re.sub(r"\$__timeFilter\(([\w.]+)\)", r"\1 between now() - interval '3h' and now()", sql)
    sql = sql.replace("${schema}", SCHEMA).replace("${queue:sqlstring}", "'default','other'")
    assert "$" not in sql, sql
    return sql


def test_every_statement_runs_and_gives_what_its_panel_draws(installed: str) -> None:
    found = list(targets("laneway-postgresql.json"))
    assert len(found) > 10
    with psycopg.connect(installed) as connection:
        for panel, target in found:
            sql = runnable(target["rawSql"])
            connection.execute(f"explain {sql}")
            cursor = connection.execute(sql)
            columns = [column.name for column in cursor.description or ()]
            if panel["type"] == "timeseries":
                assert columns[0] == "time" and len(columns) > 1, panel["title"]
            rows = cursor.fetchall()
            if panel["type"] == "stat":
                assert len(columns) == 1 and len(rows) == 1, panel["title"]


def test_the_queues_of_the_variable_are_asked_for(installed: str) -> None:
    (query,) = (
        variable["query"]
        for variable in dashboard("laneway-postgresql.json")["templating"]["list"]
        if variable["name"] == "queue"
    )
    with psycopg.connect(installed) as connection:
        assert connection.execute(runnable(query)).fetchall() == [("default",)]


def test_the_viewer_may_read_all_of_it(server: EmbeddedPostgres, installed: str) -> None:
    with Queue(installed) as queue:
        queue.install_roles()
    with psycopg.connect(installed) as connection:
        connection.execute("set role laneway_viewer")
        for _, target in targets("laneway-postgresql.json"):
            connection.execute(runnable(target["rawSql"]))
