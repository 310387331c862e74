"""Connections for the SQL files of this package."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from laneway.stores import Store, StoreAddress, open_store
from laneway.stores.postgresql import PostgresqlStore, open_postgresql


def connected(address: StoreAddress) -> AbstractContextManager[PostgresqlStore]:
    """PostgreSQL; each statement commits by itself."""
    return open_postgresql(address, __package__)


@contextmanager
def transaction(address: StoreAddress) -> Iterator[PostgresqlStore]:
    """PostgreSQL, all statements in one transaction that commits at the end."""
    with connected(address) as store, store.transaction():
        yield store


def connected_to_any(address: StoreAddress) -> AbstractContextManager[Store]:
    """Whichever database it is."""
    return open_store(address, __package__)
