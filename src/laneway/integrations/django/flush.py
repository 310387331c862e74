"""Empties the queue when ``manage.py flush`` empties the database, as ``TransactionTestCase`` does
after every test: what a test enqueued must not reach the next one."""

from typing import Any

from laneway.client.sync.queue import Queue

from .clients import close_clients
from .site_queue import SiteQueue

# Which migrations there are, and rows that install wrote.
_KEPT = ("migration", "setting", "counting")


def empty_queue(using: str, **signal: Any) -> None:
    """Called after migrate, which passes its plan, and after flush, which has none."""
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
