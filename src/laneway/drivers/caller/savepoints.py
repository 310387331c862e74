"""All of a verb or nothing, on a caller's connection, where a verb takes several statements.

On PostgreSQL an error ends the transaction. MySQL and SQLite undo only the statement that failed:
a caller that catches the error and commits would keep half a verb: messages that no claim finds, or
a key that is never freed. So a verb that fails is rolled back to a savepoint.
"""

from typing import Any, NamedTuple

from laneway.plan import Statement


class Savepoint(NamedTuple):
    begin: Statement
    done: tuple[Statement, ...]
    undo: tuple[Statement, ...]


_RELEASE = Statement("release laneway_verb")
_SQLITE = Savepoint(
    Statement("savepoint laneway_verb"),
    (_RELEASE,),
    (Statement("rollback to laneway_verb"), _RELEASE),
)
# The next one takes its name over, so nobody need release it.
_MYSQL = Savepoint(
    Statement("savepoint laneway_verb", percent=True),
    (),
    (Statement("rollback to savepoint laneway_verb", percent=True),),
)


def savepoint_for(kind: str, dialect: str) -> Savepoint | None:
    """None where none is needed, or where it would do harm: of an object with an execute() nothing
    is known, and on SQLite the release of a savepoint that began the transaction commits it."""
    if dialect == "mysql":
        return _MYSQL
    return _SQLITE if dialect == "sqlite" and kind != "protocol" else None


def is_over(connection: Any) -> bool:
    """Whether SQLite gave up the whole transaction, as it does when the disk is full: then nothing
    is left to be undone, and an adapter would only begin another one."""
    return getattr(connection, "in_transaction", None) is False
