"""The examples for Spark run, and say what their heads promise."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres
from tests.spark.conftest import LONG
from tests.spark.running import SUBMIT, submitting

_EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_ORDERS = "id,tenant,total,day\n1,acme,9.5,2026-05-01\n2,bolt,3,2026-05-01\n3,acme,1,2026-05-02\n"


def example(name: str) -> Any:
    spec = spec_from_file_location(name, _EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def url(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> str:
    url = server.create_database(f"spark examples {request.node.name}"[:60])
    with Queue(url) as queue:
        queue.install()
    return url


def end_some(queue: Queue) -> None:
    queue.publish_many([NewMessage(b"x", channel=f"t{n % 2}", kind="k") for n in range(8)])
    claimed = list(queue.claim(8))
    queue.fail(claimed[:2], "failed", error=ValueError("broken"))
    queue.complete(claimed[2:])


@pytest.mark.repeats("the pages of the docs run streams")
def test_a_stream_joined_with_a_table(spark: SparkSession, url: str, tmp_path: Path) -> None:
    join = example("spark_stream_join")
    customers = spark.createDataFrame(
        [("t0", "free"), ("t1", "paid")], "tenant string, plan string"
    )
    with Queue(url) as queue:
        for _ in range(2):
            end_some(queue)
            join.follow(spark, url, customers, str(tmp_path))
    rows = [tuple(row) for row in join.show(spark, str(tmp_path)).collect()]
    assert [row[:2] for row in rows] == [("free", "k"), ("paid", "k")]
    assert sum(row[2] for row in rows) == 4 and sum(row[3] for row in rows) == 16


def test_a_job_publishes_once(spark: SparkSession, url: str, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(_ORDERS)
    for _ in range(2):
        example("spark_submit_job").publish(
            spark, str(tmp_path / "orders.csv"), "2026-05-01", url=url
        )
    check_published(url)


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """As a notebook does: the value of a last line that is an expression is what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return [tuple(row) for row in shown.collect()] if isinstance(shown, DataFrame) else shown


def test_the_notebook_runs_cell_by_cell(
    spark: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    text = (_EXAMPLES / "spark_notebook.ipynb").read_text(encoding="utf-8")
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    names: dict[str, Any] = {}
    shown = [value for cell in cells if (value := run_cell(cell, names)) is not None]
    stats, schema, totals, letters, outcomes = shown
    assert "<td>receipts</td>" in stats._repr_html_()
    assert schema.simpleString() == "struct<id:bigint,total:double>"
    assert totals == [("acme", 15.5), ("bolt", 7.0)]
    assert "<td>no such address</td>" in letters._repr_html_()
    assert outcomes == [("acme", "completed", 2), ("bolt", "failed", 1)]


@LONG
def test_spark_submit(url: str, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(_ORDERS)
    command = [SUBMIT, "--master", "local[2]", _EXAMPLES / "spark_submit_job.py"]
    done = subprocess.run(
        [*map(str, command), str(tmp_path / "orders.csv"), "2026-05-01"],
        env={**submitting(), "LANEWAY_URL": url},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    check_published(url)


@LONG
def test_connect(url: str) -> None:
    with Queue(url) as queue:
        end_some(queue)
    done = subprocess.run(
        [sys.executable, str(_EXAMPLES / "spark_connect.py")],
        env={**os.environ, "DATABASE_URL": url, "SPARK_REMOTE": "local[2]"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.stdout.strip() == "k ValueError 2", done.stderr[-3000:]


def check_published(url: str) -> None:
    with Queue(url, name="receipts") as queue:
        claimed = sorted(queue.claim(10), key=lambda message: message.channel)
    assert [(m.channel, m.kind, m.json()) for m in claimed] == [
        ("acme", "send_receipt", {"id": 1, "total": 9.5}),
        ("bolt", "send_receipt", {"id": 2, "total": 3.0}),
    ]
