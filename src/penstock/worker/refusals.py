"""Which refusals are for good: a fault of what was to be written, not of the database's state."""

from penstock.errors import ConnectionUnavailable, DatabaseFailed, PenstockError

# Data, integrity, and what a statement may not say or do.
_SQLSTATES = ("22", "23", "42")
_MYSQL_DATA = {1153, 1264, 1265, 1292, 1366, 1406, 1690, 3140}
_MYSQL_INTEGRITY = {1048, 1062, 1364, 1451, 1452, 3819, 4025}
_MYSQL_STATEMENT = {1044, 1054, 1064, 1142, 1143, 1227, 1305, 1370}
_MYSQL = _MYSQL_DATA | _MYSQL_INTEGRITY | _MYSQL_STATEMENT
_SQLITE = ("SQLITE_CONSTRAINT", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_RANGE", "SQLITE_TOOBIG")


def is_final(error: PenstockError) -> bool:
    """All else may pass: locks and deadlocks, a full disk, a server that only reads for a while."""
    if isinstance(error, ConnectionUnavailable):
        return False
    if not isinstance(error, DatabaseFailed) or error.sqlstate is None:  # it was not even sent
        return True
    code = error.sqlstate
    if len(code) == 5:
        return code.startswith(_SQLSTATES)
    return int(code) in _MYSQL if code.isdecimal() else code.startswith(_SQLITE)
