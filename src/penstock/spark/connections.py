"""Short-lived connections for tasks and planners, with errors in our own words."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection

from penstock.drivers.faults import translated
from penstock.errors import PenstockError

from .options import Address
from .statements import statement

_TIMEOUT = 30  # seconds for the connection itself


@contextmanager
def speaking(address: Address) -> Iterator[None]:
    """Turns what drivers raise into one sentence without a secret. Nothing is chained: Spark would
    print the chain."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        if not _of_a_driver(error):
            raise
        raise translated(error, address.url) from None


@contextmanager
def connected(address: Address) -> Iterator[Connection[Any]]:
    """A connection in a transaction that commits at the end."""
    with speaking(address), psycopg.connect(address.url, connect_timeout=_TIMEOUT) as connection:
        yield connection


def ask(connection: Connection[Any], name: str, **blanks: Any) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement."""
    text = statement(connection, name, **blanks)
    return connection.execute(text.encode()).fetchall()


def _of_a_driver(error: Exception) -> bool:
    names = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(names & {"psycopg", "adbc_driver_manager"})
