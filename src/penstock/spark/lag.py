"""How far the history stream is held back, and by whom."""

from dataclasses import dataclass
from datetime import timedelta

from .connections import ask, connected
from .options import parse


@dataclass(frozen=True, slots=True)
class Watermark:
    """``waiting`` rows of history are committed but not offered yet, because a transaction that
    began before them is still open: ``holder`` says which, ``held`` for how long."""

    xid: int
    waiting: int
    holder: str | None
    held: timedelta


def watermark(url: str, schema: str = "penstock") -> Watermark:
    """What a history stream could read now, and what it waits for.

    >>> watermark("postgresql://localhost/shop").holder
    'pid 4711 (nightly-report, role shop, idle in transaction)'
    """
    address = parse({"url": url, "schema": schema, "what": "history"}, "history stream").address
    with connected(address) as connection:
        xid, waiting, pid, name, role, state, since, now = ask(
            connection, "watermark", schema=schema
        )[0]
    if since is None:
        return Watermark(xid, waiting, None, timedelta(0))
    who = "prepared transaction" if pid is None else f"pid {pid}"
    return Watermark(
        xid, waiting, f"{who} ({name or 'no name'}, role {role}, {state})", now - since
    )
