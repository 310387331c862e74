"""The site's queue: publishes on the site's connection, does all else on connections of its own."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.conf import settings
from django.db import connections, transaction

from penstock.client.sync_queue import Queue
from penstock.errors import PublishRefused
from penstock.model import Published
from penstock.schedule import Schedule

from .address import url_of
from .clients import client_for
from .nouns import SiteSchedules, SiteTopic

T = TypeVar("T")

DEFAULTS = {"database": "default", "schema": "penstock", "queue": "default"}


class SiteQueue:
    """As ``settings.PENSTOCK`` says: ``database`` (an alias), ``schema``, ``queue``.

    Publishing, also to topics, subscribing and stating schedules belong to the site's transaction;
    without one around it, each is one of its own. Everything that is not defined here is the
    client's: ``queue.numbers()``, ``queue.channel("tenant-42").limit(...)``.
    """

    @property
    def client(self) -> Queue:
        """The client, for this process and the database as it is configured now."""
        return client_for(url_of(self.connection), _setting("schema"), _setting("queue"))

    def open_client(self) -> Queue:
        """One of the caller's own, to be closed after use."""
        return Queue(url_of(self.connection), schema=_setting("schema"), queue=_setting("queue"))

    @property
    def connection(self) -> Any:
        """The site's connection of this thread."""
        return connections[_setting("database")]

    def publish(self, payload: Any, **options: Any) -> Published:
        """``Queue.publish`` in the site's transaction."""
        return self._in_transaction(self.client.publish, payload, **options)

    def publish_many(self, messages: Iterable[Any], **options: Any) -> list[Published]:
        """``Queue.publish_many`` in the site's transaction."""
        return self._in_transaction(self.client.publish_many, messages, **options)

    def topic(self, name: str) -> SiteTopic:
        """``Queue.topic``, in the site's transaction."""
        return SiteTopic(self.client.topic(name), self._in_transaction)

    def schedule(self, name: str, payload: Any = None, **options: Any) -> Schedule:
        """``Queue.schedule`` in the site's transaction."""
        return self._in_transaction(self.client.schedule, name, payload, **options)

    @property
    def schedules(self) -> SiteSchedules:
        """``Queue.schedules``."""
        return SiteSchedules(self.client.schedules, self._in_transaction)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def _in_transaction(self, verb: Callable[..., T], *args: Any, **options: Any) -> T:
        """In the site's, or in one of its own. A refusal is an answer: what the other channels took
        is published all the same, so it is raised after the commit."""
        if self.connection.in_atomic_block:
            # No block of ours inside: an error would condemn the site's.
            return verb(*args, connection=self.connection, **options)
        with transaction.atomic(using=_setting("database")):
            try:
                return verb(*args, connection=self.connection, **options)
            except PublishRefused as error:
                refused = error
        raise refused


def _setting(name: str) -> str:
    chosen: dict[str, str] = {**DEFAULTS, **getattr(settings, "PENSTOCK", {})}
    return chosen[name]
