"""The queries of the views that the report's daily tables read (``views.sql``)."""

from .tables import queries

VIEWS = ("attempt", "told", "signature", "span", "bundle", "stretch", "busy", "route")
"""Each comes after those that it reads."""


def view_sql(name: str) -> str:
    """The query of a view."""
    return queries("views.sql")[name]
