"""Text columns as str, on a caller's connection with another ``text_factory``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def text_as_str(connection: Any) -> Iterator[None]:
    """For an sqlite3 or aiosqlite connection, whose setting applies to all its cursors."""
    theirs = connection.text_factory
    if theirs is str:
        yield
        return
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = theirs
