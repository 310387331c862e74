"""Which engine a URL asks for."""

from collections.abc import Callable
from datetime import datetime

from penstock.contract import Engine
from penstock.engines.postgresql import PostgresqlEngine

Clock = Callable[[], datetime]


def open_engine(url: str, schema: str, clock: Clock | None) -> Engine:
    """PostgreSQL is all there is; drivers have checked the URL's scheme."""
    return PostgresqlEngine(schema, clock)
