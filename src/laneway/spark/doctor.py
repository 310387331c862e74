"""Checks what must be in place before the first query."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from laneway.errors import LanewayError

from .errors import reason
from .java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    checks = [_java(), _pyspark(), _package("pyarrow"), _package("psycopg")]
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
