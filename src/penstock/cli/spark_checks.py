"""Whether Spark can run here; see penstock.spark.doctor."""

from collections.abc import Iterator

from penstock.insight import Finding
from penstock.spark import Check, doctor, session


def spark_checks() -> Iterator[Finding]:
    """Java and versions first; only if they are well is Spark started, to ask its workers."""
    checks = doctor()
    if all(check.ok for check in checks):
        checks = _with_workers()
    for check in checks:
        yield Finding(f"Spark: {check.name}", "ok" if check.ok else "fail", check.text)


def _with_workers() -> list[Check]:
    spark = session("penstock doctor", master="local[2]")
    try:
        return doctor(spark)
    finally:
        spark.stop()
