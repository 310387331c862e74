"""The queries of the report's tables over all days (``summaries.sql``)."""

from .tables import queries

METRIC = "metric"
"""A view that the others read."""
SUMMARIES = ("signatures", "redrive", "slo", "normal", "forecast", "outlook", "recent")
"""Each comes after those that it reads."""
READ_BY_SUMMARIES = ("flow", "lanes", "failures", "letters", "percentiles", "hours")
"""Daily tables."""


def summary_sql(name: str) -> str:
    """The query of a table over all days."""
    return queries("summaries.sql")[name]
