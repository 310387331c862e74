"""The queries of the report's daily tables, and of the views that they read (``tables.sql``)."""

from functools import cache
from importlib.resources import files

from laneway.sqlfile import read_blocks

VIEWS = ("attempt", "signature", "span")
DAILY = (
    "flow",
    "latency",
    "lanes",
    "tries",
    "failures",
    "crashes",
    "repeats",
    "tenants",
    "letters",
    "percentiles",
    "hours",
    "fairness",
)
"""Each comes after those that it reads."""


@cache
def queries(file: str) -> dict[str, str]:
    """The queries of a file beside this module, by name."""
    return read_blocks((files(__package__) / file).read_text(encoding="utf-8"))


def table_sql(name: str) -> str:
    """The query of a daily table, or of a view that they read."""
    return queries("tables.sql")[name]
