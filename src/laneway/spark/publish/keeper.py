"""Holds a job's lock for as long as the driver lives, in a process of its own: neither the process
that begins a job nor the one that commits it lives in between.

Spark's JVM is the driver. Whoever finds the lock free knows that it is gone, with its machine too
(the server asks for a sign of life every 30 seconds), and sweeps what the job has loaded.

A new job has a minute before anybody sweeps, and most are over sooner. So a shell waits first: to
start Python and to import a driver costs as much as publishing forty thousand rows.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psycopg

_SETTINGS = {
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_NAME = "laneway job"
_CONNECTS_AFTER = 20.0  # seconds
_WAIT_FIRST = 'sleep "$0" && exec "$@"'
_STARTED: list[subprocess.Popen[bytes]] = []
_SETTING = "select set_config(name, %s, true) from pg_settings where name = %s"


class Keeper(NamedTuple):
    """A process, by its number and when it began."""

    pid: int
    began: str


def keep(url: str, hold: str, after: float = _CONNECTS_AFTER) -> Keeper:
    """Starts the process. ``hold`` is the statement that holds the lock and answers whether the job
    is still open. The URL is not among its arguments, which everybody can read."""
    from importlib.resources import files

    pid, began = driver()
    given = {"url": url, "hold": hold, "pid": pid, "began": began}
    source = files(__package__).joinpath("keeper.py").read_text(encoding="utf-8")
    # -S: where packages are is known.
    python = [sys.executable, "-P", "-S", "-c", source]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _WAIT_FIRST, f"{after:g}", *python],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    # Who has ended stays in the table of processes until somebody asks.
    _STARTED[:] = [one for one in (*_STARTED, process) if one.poll() is None]
    if process.stdin is not None:
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps(given).encode())
    found = _process(process.pid)
    return Keeper(process.pid, found[2] if found else "")


def end(keeper: Keeper) -> None:
    """The job is over, so ends the process, and what it waits for. Without /proc nobody knows whose
    number it is now, and the process finds out by itself."""
    found = _process(keeper.pid)
    if keeper.began and found is not None and found[2] == keeper.began:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(keeper.pid, signal.SIGTERM)


def driver() -> tuple[int, str]:
    """The JVM above this process, or else this process; and when it began, because process ids are
    used again."""
    pid = os.getpid()
    while (found := _process(pid)) is not None and pid > 1:
        name, parent, began = found
        if name == "java":
            return pid, began
        pid = parent
    own = _process(os.getpid())
    return os.getpid(), own[2] if own else ""


def _process(pid: int) -> tuple[str, int, str] | None:
    """Its name, parent and begin; None if it has ended. Where there is no /proc only the parent is
    known, which lives as long as the driver."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        return _process_without_proc(pid)
    name, fields = told.partition("(")[2].rpartition(")")[0], told.rpartition(")")[2].split()
    return None if fields[0] == "Z" else (name, int(fields[1]), fields[19])


def _process_without_proc(pid: int) -> tuple[str, int, str] | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ("", os.getppid(), "") if pid == os.getpid() else ("java", 1, "")


def _hold(url: str, hold: str, pid: int, began: str) -> None:
    """Until the job or the driver has ended. A connection that is lost is opened again: after a
    restart of the server sweeps wait for that."""

    def lives() -> bool:
        found = _process(pid)
        return found is not None and found[2] == began

    def held() -> bool:
        row = connection.execute(hold.encode()).fetchone()
        return row is not None and bool(row[0])

    while lives():
        try:
            with psycopg.connect(url, connect_timeout=30, application_name=_NAME) as connection:
                if connection.info.parameter_status("in_hot_standby") == "on":
                    raise psycopg.OperationalError("a standby: others look for the lock elsewhere")
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                for name, value in _SETTINGS.items():
                    connection.execute(_SETTING, [value, name])
                while held():
                    if not lives():
                        return
                    time.sleep(1)
            return
        except psycopg.OperationalError:
            time.sleep(1)


if __name__ == "__main__":
    _hold(**json.load(sys.stdin))
