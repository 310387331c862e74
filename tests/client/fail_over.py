"""Pairs of servers behind one address, which leads to the old one for a while after a fail-over."""

from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pymysql

from laneway.dev.chaos.proxy import Proxy
from laneway.dev.chaos.targets import Replica
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from tests.conftest import SETTINGS

_OURS = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> %s"


def at_port(url: str, port: int, scheme: str | None = None, user: str | None = None) -> str:
    parts = urlsplit(url)
    netloc = f"{user or parts.username}@127.0.0.1:{port}"
    return urlunsplit(parts._replace(scheme=scheme or parts.scheme, netloc=netloc))


class Cluster:
    """A primary and its streaming standby. ``port`` is the address that clients know."""

    def __init__(self) -> None:
        self.primary: EmbeddedPostgres = EmbeddedPostgres(version=18, settings=SETTINGS)
        self.standby: EmbeddedPostgres = Replica(self.primary)

    def __enter__(self) -> Self:
        self.primary.start()
        self.standby.start()
        self._proxy = Proxy(self.primary.port)
        self.port = self._proxy.open("clients")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._proxy.close()
        self.standby.close()
        self.primary.close()

    def fail_over(self) -> None:
        """The standby is promoted, and the old primary follows it. The address does not know."""
        old, new = self.primary, self.standby
        old.stop()
        new._server_command("pg_ctl", "promote", "-w", "-D", str(new.data))
        (old.data / "standby.signal").touch()
        old.settings["primary_conninfo"] = f"host=127.0.0.1 port={new.port} user=postgres"
        old.start()
        self.primary, self.standby = new, old

    def arrive(self) -> None:
        """The address leads to the new primary now; connections that are open stay open."""
        self._proxy.redirect(self.primary.port)

    def clients_of_standby(self) -> int:
        with psycopg.connect(self.standby.url(), autocommit=True) as connection:
            ((count,),) = connection.execute(_OURS, [connection.info.backend_pid]).fetchall()
        return int(count)


class MysqlPair:
    """Two servers that need know nothing of each other: the first one becomes read-only."""

    def __init__(self) -> None:
        self.old, self.new = EmbeddedMariaDB(), EmbeddedMariaDB()

    def __enter__(self) -> Self:
        for server in (self.old, self.new):
            server.start()
            server.execute("create user shop@'127.0.0.1'")
            server.execute("grant all on *.* to shop@'127.0.0.1'")
            # Root, and whoever may do all, writes nevertheless.
            server.execute("revoke super, read_only admin on *.* from shop@'127.0.0.1'")
        self._proxy = Proxy(self.old.port)
        self.port = self._proxy.open("clients")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._proxy.close()
        for server in (self.old, self.new):
            server.close()

    def create_database(self, name: str) -> str:
        """On both; its URL on the first, for the user without rights over the server."""
        self.new.create_database(name)
        return at_port(self.old.create_database(name), self.old.port, user="shop")

    def clients_of_old(self) -> int:
        port = self.old.port
        with (
            pymysql.connect(host="127.0.0.1", port=port, user="root") as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "select count(*) from information_schema.processlist where user = 'shop'"
            )
            ((count,),) = cursor.fetchall()
        return int(count)

    def start_over(self) -> None:
        self.old.execute("set global read_only = 0")
        self._proxy.redirect(self.old.port)

    def fail_over(self) -> None:
        self.old.execute("set global read_only = 1")

    def arrive(self) -> None:
        self._proxy.redirect(self.new.port)
