"""The client of this process, for what is not done on the site's connection."""

from threading import Lock
from typing import Any

from django.db.backends.base.base import NO_DB_ALIAS

from laneway.client.sync.queue import Queue

_clients: dict[tuple[str, str, str], Queue] = {}
_changing = Lock()


def client_for(url: str, schema: str, queue: str) -> Queue:
    """The same while the settings stay the same. Others are closed: nobody will ask for them, and
    the database of a test cannot be dropped while somebody is connected."""
    wanted = (url, schema, queue)
    found = _clients.get(wanted)
    if found is not None:
        return found
    with _changing:
        if wanted not in _clients:
            _close_all()
            _clients[wanted] = Queue(url, schema=schema, name=queue)
        return _clients[wanted]


def make_way(connection: Any, **signal: Any) -> None:
    """Called when Django has connected. It does so to no database when it is about to create, copy
    or drop one, which it cannot while somebody is connected; tests do."""
    if connection.alias == NO_DB_ALIAS:
        close_clients()


def close_clients() -> None:
    """The next use opens another."""
    with _changing:
        _close_all()


def _close_all() -> None:
    while _clients:
        _, client = _clients.popitem()
        client.close()
