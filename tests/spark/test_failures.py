"""What goes wrong is one sentence: no stack of the JVM, and no secret."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from laneway import Queue
from laneway.spark import reason
from tests.place import Place
from tests.spark.conftest import LONG, load, options
from tests.spark.running import run_app
from tests.spark.streams import Sink, run

_SECRET = "canary-2b81c"


@pytest.fixture
def walled(place: Place) -> Iterator[str]:
    """A URL with the wrong password of a role that needs one."""
    role = f"walled_{abs(hash(place.schema)) % 10**8}"
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(f"create role {role} login password 'right'".encode())
        (rules,) = connection.execute("show hba_file").fetchone() or ("",)
        known = Path(rules).read_text()
        Path(rules).write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{known}")
        connection.execute("select pg_reload_conf()")
        yield place.url.replace("postgres@", f"{role}:{_SECRET}@")
        Path(rules).write_text(known)
        connection.execute("select pg_reload_conf()")
        connection.execute(f"drop role {role}".encode())


def sentence(error: BaseException) -> str:
    said = reason(error)
    assert "\n" not in said and "at org.apache" not in said and "Traceback" not in said
    assert _SECRET not in f"{said}{error}"
    return said


@pytest.mark.parametrize(
    ("options", "columns", "why"),
    [
        ({"colour": "red"}, "'1' as payload", "there is no option 'colour'"),
        ({"priority": "high"}, "'1' as payload", "option 'priority' is 'high'"),
        ({}, "'1' as text", "the frame has no column 'payload'"),
        ({}, "'no json' as payload", "payload of row 1 of partition 0: the payload is not JSON"),
    ],
)
def test_our_errors_come_without_a_traceback(
    spark: SparkSession, queue: Queue, place: Place, options: dict[str, str], columns: str, why: str
) -> None:
    """Of what Spark prints, whether it was found in the plan or by a task."""
    writer = spark.range(0, 1, 1, 1).selectExpr(columns).write.format("laneway").mode("append")
    with pytest.raises(Exception, match=why) as caught:
        writer.options(url=place.url, schema=place.schema, **options).save()
    text = str(caught.value)
    assert "Traceback" not in text and len(text) < 500, text
    assert reason(caught.value).startswith(why)


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_wrong_password(
    spark: SparkSession, queue: Queue, place: Place, walled: str, tmp_path: Path, way: str
) -> None:
    here = Place(walled, place.schema)
    with pytest.raises(Exception) as caught:
        attempt(spark, here, way, tmp_path)
    said = sentence(caught.value)
    assert said.startswith("no connection to postgresql://walled_")
    assert "password authentication failed" in said


@pytest.mark.parametrize("way", ["read", "stream"])
def test_an_unreachable_database(
    spark: SparkSession, place: Place, tmp_path: Path, way: str
) -> None:
    nowhere = Place(f"postgresql://app:{_SECRET}@127.0.0.1:1/shop", place.schema)
    with pytest.raises(Exception) as caught:
        attempt(spark, nowhere, way, tmp_path)
    said = sentence(caught.value)
    assert said.startswith("no connection to postgresql://app:***@127.0.0.1:1/shop")


def attempt(spark: SparkSession, place: Place, way: str, folder: Path) -> None:
    if way == "read":
        load(spark, place).count()
    elif way == "write":
        frame = spark.range(1).selectExpr("'1' as payload")
        frame.write.format("laneway").options(**options(place)).mode("append").save()
    else:
        run(spark, place, Sink(), folder, what="history")


def test_what_spark_itself_refuses(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="nosuch") as caught:
        spark.read.format("nosuch").load()
    assert "Failed to find the data source: nosuch" in sentence(caught.value)


def test_a_command_without_a_database_says_one_line(tmp_path: Path) -> None:
    """And does not start Java for it, if the URL is none."""
    command = [sys.executable, "-m", "laneway.cli", "redrive", "--spark", "--all", "--yes"]
    done = subprocess.run(
        [*command, "--url", f"oracle://app:{_SECRET}@db/shop"],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert _SECRET not in done.stderr and len(done.stderr.splitlines()) <= 2


_HIDES_PYARROW = """
import sys


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name=name)


sys.meta_path.insert(0, Hidden())
"""


@LONG
@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("pyspark.worker", "workers cannot import pyarrow: install laneway[spark] on each node"),
        ("", "Spark's Python cannot import laneway or what it needs: install laneway[spark]"),
    ],
)
def test_no_pyarrow_on_workers(
    queue: Queue, place: Place, tmp_path: Path, where: str, why: str
) -> None:
    """A Python for Spark without pyarrow: for tasks, or also for what looks for the format."""
    queue.publish(b"to read nothing needs no worker")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(_HIDES_PYARROW)
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"{where}"*) export PYTHONPATH="{hidden}:$PYTHONPATH" ;; esac\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    done = run_app("no_pyarrow.py", place.url, place.schema, str(python))
    assert (
        "DOCTOR workers cannot import laneway.spark.source, pyarrow: "
        "install laneway[spark] on each node" in done.stdout
    ), done.stdout + done.stderr[-3000:]
    assert f"REASON {why}" in done.stdout


_TASK = """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "stores/arrow.py", line 49, in _fitted
    arrays = [array.cast(field.type)]

  File "pyarrow/array.pxi", line 1923, in pyarrow.lib.Array.cast
{}
 SQLSTATE: 38000

JVM stacktrace:
org.apache.spark.SparkException: Task failed.
"""


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        ("pyarrow.lib.ArrowNotImplementedError: no cast from string to map", None),
        ("KeyError: 'order'", None),
        ("AssertionError", None),
        ("laneway.errors.InvalidOption: no such option", "no such option"),
    ],
)
def test_the_last_line_of_a_tasks_traceback_is_the_reason(
    raised: str, sentence: str | None
) -> None:
    assert reason(Exception(_TASK.format(raised))) == (sentence or raised)
