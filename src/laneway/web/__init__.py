"""The dashboard and /api/v1: what an operator sees and does, in a browser and as JSON.

>>> app.mount("/queue", dashboard(queue, principal=who))
"""

from collections.abc import Mapping
from typing import Any

from laneway.extras import needs
from laneway.operator import ADMIN, OPERATOR, VIEWER, Principal, Right

with needs("the dashboard", "Jinja2", "dashboard"):
    from .dashboard import Dashboard
    from .databases import Dashboards


def dashboard(queue: Any, **options: Any) -> Any:
    """An ASGI application to mount anywhere; the options are those of :class:`Dashboard`. With
    several queues by name it shows all of their databases."""
    with needs("the dashboard", "Starlette", "dashboard"):
        from .asgi import DashboardApp

    several = isinstance(queue, Mapping)
    return DashboardApp(Dashboards(queue, **options) if several else Dashboard(queue, **options))


__all__ = [
    "ADMIN",
    "OPERATOR",
    "VIEWER",
    "Dashboard",
    "Dashboards",
    "Principal",
    "Right",
    "dashboard",
]
