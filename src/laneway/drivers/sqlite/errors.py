"""Laneway's errors for what sqlite3 raises."""

import sqlite3

from laneway.drivers.errors import missing_schema
from laneway.errors import ConnectionUnavailable, DatabaseFailed, LanewayError

from .busy_retry import is_busy

_AWAY = {"SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PERM", "SQLITE_AUTH"}
_ADVICE = {
    "SQLITE_CANTOPEN": "the folder must exist, and this user must be able to write there",
    "SQLITE_NOTADB": "point the URL at another file",
    "SQLITE_READONLY": "this user must be able to write the file and its folder",
    "SQLITE_FULL": "nothing of this call was written: free some disk space",
    "SQLITE_CORRUPT": "restore a backup, or recover what is readable with sqlite3's .recover",
}


def translated(error: sqlite3.Error | OSError, path: str, wait: float) -> LanewayError:
    """For errors on our own connections."""
    if isinstance(error, OSError):  # from the lock file of the write queue
        return ConnectionUnavailable(f"{path} cannot be opened: {error}")
    if missing := missing_schema(error):
        return missing
    name = getattr(error, "sqlite_errorname", None)
    if is_busy(error) or str(error) == "database is locked":
        return DatabaseFailed(
            f"another transaction held the write lock of {path} for {wait:.0f} s; nothing was "
            "written: find out who keeps a transaction open",
            "SQLITE_BUSY",
        )
    if name is not None and any(name.startswith(away) for away in _AWAY):
        return ConnectionUnavailable(f"{path} cannot be opened: {error}{_advice(name)}")
    return DatabaseFailed(f"SQLite refused: {error} ({path}){_advice(name)}", name)


def _advice(name: str | None) -> str:
    """By the first two words of the error's name; a third one only adds detail."""
    advice = _ADVICE.get("_".join((name or "").split("_")[:2]))
    return f"; {advice}" if advice else ""
