"""The site's queue: publishes on the site's connection, does all else on connections of its own."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connections, transaction

from penstock.client.sync_queue import Queue
from penstock.model import Published

from .address import url_of

DEFAULTS = {"database": "default", "schema": "penstock", "queue": "default"}


class SiteQueue:
    """As ``settings.PENSTOCK`` says: ``database`` (an alias), ``schema``, ``queue``.

    Without a transaction around it, publishing is one of its own. Everything that is not defined
    here is the client's: ``queue.numbers()``, ``queue.channel("tenant-42").limit(...)``.
    """

    @property
    def client(self) -> Queue:
        """The client, for this process and the database as it is configured now."""
        return _client(url_of(self.connection), _setting("schema"), _setting("queue"))

    @property
    def connection(self) -> Any:
        """The site's connection of this thread."""
        return connections[_setting("database")]

    def publish(self, payload: Any, **options: Any) -> Published:
        """``Queue.publish`` in the site's transaction."""
        with self._transaction():
            return self.client.publish(payload, connection=self.connection, **options)

    def publish_many(self, messages: Iterable[Any], **options: Any) -> list[Published]:
        """``Queue.publish_many`` in the site's transaction."""
        with self._transaction():
            return self.client.publish_many(messages, connection=self.connection, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def _transaction(self) -> AbstractContextManager[None]:
        """None of our own inside the site's: an error would condemn that one."""
        if self.connection.in_atomic_block:
            return nullcontext()
        return transaction.atomic(using=_setting("database"))  # type: ignore[no-any-return]


def _setting(name: str) -> str:
    chosen: dict[str, str] = {**DEFAULTS, **getattr(settings, "PENSTOCK", {})}
    return chosen[name]


@cache
def _client(url: str, schema: str, queue: str) -> Queue:
    return Queue(url, schema=schema, queue=queue)
