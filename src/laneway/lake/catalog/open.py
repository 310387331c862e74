"""The catalog of a lake, by the URL of the queue's database."""

from laneway.drivers.sqlite.url import read_url
from laneway.errors import InvalidOption
from laneway.stores import store_address

from .catalog import Catalog


def open_catalog(url: str, schema: str, lake: str) -> Catalog:
    """Connects when it is used."""
    address = store_address(url, schema)
    if address.dialect == "postgresql":
        from .postgresql import PostgresqlCatalog

        return PostgresqlCatalog(address, lake)
    if address.dialect == "sqlite" and read_url(address.url).in_memory:
        raise InvalidOption(
            "a SQLite database in memory cannot have a lake: it is gone when its process ends"
        )
    from .mysql_sqlite import MysqlSqliteCatalog

    return MysqlSqliteCatalog(address, lake)
