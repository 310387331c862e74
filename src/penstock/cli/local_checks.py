"""What doctor can only see from this machine: versions, the clock, a pooler in between."""

import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from penstock.insight import Finding

if TYPE_CHECKING:
    from penstock import Queue

    from .config import Config

_OLDEST_PYTHON = (3, 11)
_DRIVERS = ("psycopg", "psycopg-pool", "asyncpg", "PyMySQL")
_SKEW = timedelta(seconds=2)


def versions(config: "Config") -> Iterator[Finding]:
    text = f"Python {platform.python_version()}, Penstock {version('penstock')}"
    drivers = [f"{name} {found}" for name in _DRIVERS if (found := _installed(name))]
    says = ", ".join([text, *drivers]) + "."
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("versions", "fail", says, "Penstock needs Python 3.11 or newer.")
    else:
        yield Finding("versions", "ok", says)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def clock_skew(client: "Queue") -> Finding:
    """The database's clock against ours; half the way there and back is not skew."""
    before = time.monotonic()
    theirs = client.clock()
    way = timedelta(seconds=(time.monotonic() - before) / 2)
    skew = theirs - (datetime.now(UTC) - way)
    doubt = _SKEW + way
    seconds = abs(skew.total_seconds())
    if abs(skew) <= doubt:
        return Finding(
            "clock", "ok", f"This machine and the database agree within {seconds:.2f} s."
        )
    ahead = "ahead of" if skew > timedelta(0) else "behind"
    says = f"The database's clock is {seconds:.1f} s {ahead} this machine's."
    mend = (
        "Promises hold (only the database's clock counts), but times you give with --at are off: "
        "run NTP on both."
    )
    return Finding("clock", "warn", says, mend)


def pooler(config: "Config") -> Iterator[Finding]:
    """Whether two sessions are served by one backend, which only a pooler can do."""
    if config.url is None or not config.url.startswith(("postgresql", "postgres")):
        return
    mode = _pooler_mode(config.url)
    if mode is None:
        yield Finding("pooler", "ok", "None between here and the server, or one in session mode.")
    elif config.pooler:
        yield Finding("pooler", "ok", "A pooler in transaction mode, as penstock.toml says.")
    else:
        says = "The URL leads to a pooler in transaction mode."
        mend = "Say so: Queue(url, pooler=True), and pooler = true in penstock.toml."
        yield Finding("pooler", "warn", says, mend)


def _pooler_mode(url: str) -> str | None:
    import psycopg

    plain = "postgresql" + url[url.index("://") :]
    with (
        psycopg.connect(plain, autocommit=True, prepare_threshold=None) as first,
        psycopg.connect(plain, autocommit=True, prepare_threshold=None) as second,
    ):
        mine = first.execute("select pg_backend_pid()").fetchone()
        theirs = second.execute("select pg_backend_pid()").fetchone()
        return "transaction" if mine == theirs else None
