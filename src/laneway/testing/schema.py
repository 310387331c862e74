"""The schema of a test run: installed once, emptied before each test, and never somebody else's."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import PurePath

from laneway.client.sync.queue import Queue
from laneway.drivers.choice import same_database
from laneway.drivers.database_url import database_url
from laneway.drivers.errors import masked
from laneway.drivers.sqlite.url import MEMORY
from laneway.errors import InvalidOption
from laneway.stores.store import Store, open_store, store_address

# What emptying leaves as it is, or resets by a statement of its own.
_KEPT = {
    *("migration", "setting"),
    *("counting", "server_life_mark"),
    *("turnstile", "fold"),
    "state",
}
_MARKED = re.compile(r"(?<![a-z])tests?(?![a-z])", re.IGNORECASE)


class EmptiedSchema:
    """Of one database."""

    def __init__(self, store: Store, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        self._store = store
        dialect = store.address.dialect
        shape = import_module(f"laneway.engines.{dialect}.schema").shape(schema)
        self._tables = [name for kind, name in shape if kind == "table" and name not in _KEPT]

    def empty(self) -> None:
        """Deletes everything but the schema and its settings."""
        store = self._store
        with store.transaction():
            store.tell("prepare")
            for table in self._tables:
                store.tell("empty_table", table=table)
            store.tell("reset_counts")
            store.tell("reset_state")


@contextmanager
def emptied_schema(url: str, schema: str) -> Iterator[EmptiedSchema]:
    """Installs what is missing. Raises InvalidOption for a database that may not be for tests."""
    url = database_url(url)
    check_is_for_tests(url, schema)
    with Queue(url, schema=schema) as queue:
        queue.install()
    with open_store(store_address(url, schema), __package__) as store:
        yield EmptiedSchema(store, url, schema)


def check_is_for_tests(url: str, schema: str) -> None:
    dialect, *_, name = same_database(url)
    if dialect == "sqlite":
        if name == MEMORY:
            raise InvalidOption("the clients of a test need the same database: use a SQLite file")
        name = PurePath(name).stem
    if _MARKED.search(name) or _MARKED.search(schema):
        return
    raise InvalidOption(
        f"tests would delete everything in the schema {schema!r} of {masked(url)}: neither the "
        f"database {name!r} nor the schema has the word test in its name. Use a database of the "
        "tests' own, or set laneway_schema"
    )
