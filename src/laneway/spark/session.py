"""A Spark session with settings for one machine and the queue's jobs."""

import os
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

from laneway.extras import needs

from .java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def _defaults() -> dict[str, str]:
    return {
        **_DEFAULTS,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": _quiet(),
    }


def _spark_session() -> "type[SparkSession]":
    with needs("Spark", "pyspark", "spark"):
        from pyspark.sql import SparkSession
    return SparkSession
