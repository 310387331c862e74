"""Texts as str, also on a caller's connection that has them as something else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def plain_texts(connection: Any) -> Iterator[None]:
    """Of an sqlite3 or aiosqlite connection, which has this setting for all its cursors."""
    theirs = connection.text_factory
    if theirs is str:
        yield
        return
    connection.text_factory = str
    try:
        yield
    finally:
        connection.text_factory = theirs
