"""The Spark SQL of the report: one file for each table."""

from functools import cache
from importlib.resources import files


def table_sql(name: str) -> str:
    """The query of a daily table, or of a view that they read."""
    return _text("tables", name)


def summary_sql(name: str) -> str:
    """The query of a table over all days."""
    return _text("summaries", name)


@cache
def _text(folder: str, name: str) -> str:
    return (files(__package__) / folder / f"{name}.sql").read_text(encoding="utf-8")
