"""What sqlite3 raises, in our own terms."""

import sqlite3

from penstock.errors import ConnectionUnavailable, DatabaseFailed, PenstockError

from .faults import missing_schema
from .sqlite_patience import is_busy

_AWAY = {"SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PERM", "SQLITE_AUTH"}


def translated(error: sqlite3.Error | OSError, path: str, wait: float) -> PenstockError:
    """Our error for one on a connection of our own."""
    if isinstance(error, OSError):  # of the file in which writers stand in line
        return ConnectionUnavailable(f"{path} cannot be opened: {error}")
    if missing := missing_schema(error):
        return missing
    name = getattr(error, "sqlite_errorname", None)
    if is_busy(error) or str(error) == "database is locked":
        return DatabaseFailed(
            f"another transaction held the write lock of {path} for {wait:.0f} s; nothing was "
            "written: find who keeps a transaction open",
            "SQLITE_BUSY",
        )
    if name is not None and any(name.startswith(away) for away in _AWAY):
        return ConnectionUnavailable(f"{path} cannot be opened: {error}")
    return DatabaseFailed(f"SQLite refused: {error}", name)
