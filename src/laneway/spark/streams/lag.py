"""How far the history stream lags behind, and because of which transaction."""

from dataclasses import dataclass
from datetime import timedelta

from laneway.spark.options import parse
from laneway.spark.store import connected


@dataclass(frozen=True, slots=True)
class Watermark:
    """``waiting`` rows of history are committed but cannot be streamed yet, because a transaction
    that began before them is still open: ``holder`` names it, ``held`` is its age."""

    xid: int
    waiting: int
    holder: str | None
    held: timedelta


def watermark(url: str, schema: str = "laneway") -> Watermark:
    """Up to where a history stream can read now, and what it waits for.

    >>> watermark("postgresql://localhost/shop").holder
    'pid 4711 (nightly-report, role shop, idle in transaction)'
    """
    address = parse({"url": url, "schema": schema, "what": "history"}, "history stream").address
    with connected(address) as store:
        xid, waiting, pid, name, role, state, since, now = store.ask("watermark")[0]
    if since is None:
        return Watermark(xid, waiting, None, timedelta(0))
    who = "prepared transaction" if pid is None else f"pid {pid}"
    return Watermark(
        xid, waiting, f"{who} ({name or 'no name'}, role {role}, {state})", now - since
    )
