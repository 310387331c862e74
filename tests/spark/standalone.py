"""A standalone cluster of two workers on two loopback addresses.

To Spark these are two hosts: it runs a speculative attempt only on another host than the first one,
and all executors of a local-cluster are on the same.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import __file__ as pyspark_file

from laneway.spark.environment import find_java
from tests.spark.running import APPS

_LAUNCHER = Path(pyspark_file).parent / "bin" / "spark-class"
_MASTER = "127.0.0.1"
_WORKERS = ("127.0.0.2", "127.0.0.3")


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """The master's URL; ``folder`` is for what the workers write."""
    port = _free_port()
    url = f"spark://{_MASTER}:{port}"
    running = [_started("master.Master", _MASTER, folder, "--port", str(port))]
    for host in _WORKERS:
        limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / host))
        running.append(_started("worker.Worker", host, folder, *limits, url))
    try:
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(60)


def _started(role: str, host: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "PYTHONPATH": str(APPS.parent.parent.parent),
    }
    if (home := find_java().home) is not None:
        environment["JAVA_HOME"] = str(home)
    command = [
        str(_LAUNCHER),
        f"org.apache.spark.deploy.{role}",
        "--host",
        host,
        "--webui-port",
        "0",
    ]
    with (folder / f"{role}-{host}.log").open("wb") as log:
        return subprocess.Popen([*command, *more], env=environment, stdout=log, stderr=log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_MASTER, 0))
        return int(probe.getsockname()[1])
