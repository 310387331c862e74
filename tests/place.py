"""Where a test has its tables."""

from itertools import count
from typing import NamedTuple

_numbers = count(1)


class Place(NamedTuple):
    """A schema of a database."""

    url: str
    schema: str

    @property
    def asyncpg_url(self) -> str:
        return self.url.replace("postgresql://", "postgresql+asyncpg://")

    @property
    def psycopg_url(self) -> str:
        return self.url.replace("postgresql://", "postgresql+psycopg://")


def fresh_schema() -> str:
    """A name that needs quotes, for a schema that no other test has."""
    return f"test {next(_numbers)}"
