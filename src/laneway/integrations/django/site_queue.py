"""The site's queue: publishes on the site's connection, does all else on connections of its own.

Topics and schedules of the site: what can be part of the site's transaction is.
"""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, TypeVar

from django.conf import settings
from django.db import connections, transaction
from django.db.backends.base.base import NO_DB_ALIAS

from laneway.client.sync.publish import Topic
from laneway.client.sync.queue import Queue
from laneway.client.sync.schedules import Schedules
from laneway.contract import Engine
from laneway.errors import PublishRefused
from laneway.model import Published
from laneway.plan import Plan
from laneway.schedule import Schedule
from laneway.topic import TopicCopy

from .database_url import url_of

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


InTransaction = Callable[..., Any]
"""Calls a verb with these arguments on the site's connection."""


class SiteTopic:
    """As :class:`laneway.Topic`; copies and subscriptions belong to the site's transaction."""

    def __init__(self, topic: Topic, in_transaction: InTransaction) -> None:
        self._topic = topic
        self._in_transaction = in_transaction

    def publish(self, payload: Any, **options: Any) -> Sequence[TopicCopy]:
        copies: Sequence[TopicCopy] = self._in_transaction(self._topic.publish, payload, **options)
        return copies

    def publish_many(
        self, messages: Iterable[Any], **options: Any
    ) -> Sequence[Sequence[TopicCopy]]:
        copies: Sequence[Sequence[TopicCopy]] = self._in_transaction(
            self._topic.publish_many, messages, **options
        )
        return copies

    def subscribe(self, queue: str | None = None, **options: Any) -> None:
        self._in_transaction(self._topic.subscribe, queue, **options)

    def unsubscribe(self, queue: str | None = None) -> bool:
        there: bool = self._in_transaction(self._topic.unsubscribe, queue)
        return there

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topic, name)


class SiteSchedules:
    """As :class:`laneway.Schedules`; a removal belongs to the site's transaction."""

    def __init__(self, schedules: Schedules, in_transaction: InTransaction) -> None:
        self._schedules = schedules
        self._in_transaction = in_transaction

    def remove(self, name: str, **options: Any) -> None:
        self._in_transaction(self._schedules.remove, name, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedules, name)


T = TypeVar("T")

DEFAULTS = {"database": "default", "schema": "laneway", "queue": "default"}
SETTINGS = (*DEFAULTS, "worker", "principal")


class SiteQueue:
    """As ``settings.LANEWAY`` says: ``database`` (an alias), ``schema``, ``queue``.

    Publishing, also to topics, subscribing and stating schedules belong to the site's transaction;
    without one around it, each is one of its own. Everything that is not defined here is the
    client's: ``queue.stats()``, ``queue.channel("tenant-42").limit(...)``.
    """

    @property
    def client(self) -> Queue:
        """The client, for this process and the database as it is configured now."""
        return client_for(url_of(self.connection), _setting("schema"), _setting("queue"))

    def open_client(self) -> Queue:
        """One of the caller's own, to be closed after use."""
        return Queue(url_of(self.connection), schema=_setting("schema"), name=_setting("queue"))

    @property
    def connection(self) -> Any:
        """The site's connection of this thread."""
        return queue_connection()

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

    def read(self, plan: Callable[[Engine], Plan[T]]) -> T:
        """Inside of the site's transaction what that has written is seen too."""
        database = self.client.database
        if self.connection.in_atomic_block:
            return database.run(plan(database.engine), self.connection)
        return database.run(plan(database.engine))

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


def queue_connection() -> Any:
    """The site's connection to the queue's database, of this thread."""
    return connections[_setting("database")]


def _setting(name: str) -> str:
    chosen: dict[str, str] = {**DEFAULTS, **site_settings()}
    return chosen[name]


def site_settings() -> dict[str, Any]:
    """``settings.LANEWAY``, without the defaults."""
    given: dict[str, Any] = getattr(settings, "LANEWAY", {})
    return given


# Which migrations there are, and rows that install wrote.
_KEPT = ("migration", "setting", "counting")


def empty_queue(using: str, **signal: Any) -> None:
    """Empties the queue when ``manage.py flush`` empties the database, as ``TransactionTestCase``
    does after every test: what a test enqueued must not reach the next one.

    Called after migrate, which passes its plan, and after flush, which has none."""
    queue = SiteQueue()
    if "plan" in signal or using != queue.connection.alias:
        return
    with queue.open_client() as client:
        if _is_new(client):
            return
        if queue.connection.vendor == "postgresql":
            _truncate(queue.connection, client._address.schema)
        else:
            client.uninstall()
            client.install()
    # Their connections remember tables that are gone.
    close_clients()


def _is_new(client: Queue) -> bool:
    """To empty it takes longer than to look."""
    return not (
        client.totals().published
        or client.schedules.list()
        or client.subscriptions()
        or client.channels()
    )


def _truncate(connection: Any, schema: str) -> None:
    """To install anew takes a second on PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select format('%%I.%%I', schemaname, tablename) from pg_tables "
            "where schemaname = %s and tablename <> all(%s)",
            [schema, list(_KEPT)],
        )
        tables = ", ".join(row[0] for row in cursor.fetchall())
        cursor.execute(f"truncate {tables}")
