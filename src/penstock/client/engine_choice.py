"""Which engine a URL asks for. Only that one is imported."""

from collections.abc import Callable
from datetime import datetime
from importlib import import_module

from penstock.contract import Engine
from penstock.drivers.choice import driver_of

Clock = Callable[[], datetime]

# By dialect: package and class.
ENGINES = {
    "postgresql": ("penstock.engines.postgresql", "PostgresqlEngine"),
    "sqlite": ("penstock.engines.sqlite", "SqliteEngine"),
    "mysql": ("penstock.engines.mysql", "MysqlEngine"),
}


def open_engine(url: str, schema: str, clock: Clock | None) -> Engine:
    """The engine for this URL's database."""
    package, name = ENGINES[driver_of(url).dialect]
    engine: Engine = getattr(import_module(package), name)(schema, clock)
    return engine
