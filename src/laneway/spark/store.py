"""Connections for the SQL files of this package."""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, Thread
from time import monotonic, sleep

from laneway.stores import Store, StoreAddress, open_store
from laneway.stores.postgresql import PostgresqlStore, open_postgresql
from laneway.stores.store import translated_errors, wrong_server_told


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


_KEPT_FOR = 5.0  # seconds


class TaskConnections:
    """What one Python process of Spark keeps from task to task, which are many and may be small:
    its last connection, for a few seconds. Such a process runs one task at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: PostgresqlStore | None = None
        self._kept_until = 0.0
        self._watched = self._frozen = False

    @contextmanager
    def transaction(self, address: StoreAddress) -> Iterator[PostgresqlStore]:
        """Like the function of that name. Only a connection whose transaction has committed is
        kept."""
        with translated_errors(PostgresqlStore, address):
            store = self._taken(address)
            try:
                told = wrong_server_told(PostgresqlStore, store.connection)
                with told, store.transaction():
                    yield store
            except BaseException:
                store.connection.close()
                raise
            self._keep(store)

    def _taken(self, address: StoreAddress) -> PostgresqlStore:
        with self._lock:
            store, self._kept = self._kept, None
        if store is not None:
            if store.address == address and store.lives():
                return store
            store.connection.close()
        return PostgresqlStore(address, __package__, PostgresqlStore.connect(address))

    def _keep(self, store: PostgresqlStore) -> None:
        with self._lock:
            self._kept, self._kept_until = store, monotonic() + _KEPT_FOR
            if not self._watched:
                self._watched = True
                Thread(target=self._close_later, daemon=True).start()
        if not self._frozen:
            # Spark's process looks for garbage after each task. What it has by now, modules for
            # the most part, need not be looked through each time.
            self._frozen = True
            gc.freeze()

    def _close_later(self) -> None:
        while True:
            with self._lock:
                store, left = self._kept, self._kept_until - monotonic()
                if store is not None and left <= 0:
                    self._kept, self._watched = None, False
                    store.connection.close()
                    return
            sleep(max(left, 1))


TASKS = TaskConnections()
