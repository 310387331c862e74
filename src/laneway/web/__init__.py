"""The dashboard and /api/v1: what an operator sees and does, in a browser and as JSON.

>>> app.mount("/queue", dashboard(queue))
"""

from typing import Any

from laneway.extras import needs
from laneway.operator import ADMIN, OPERATOR, VIEWER, Principal, Right

with needs("the dashboard", "Jinja2", "dashboard"):
    from .dashboard import Dashboard


def dashboard(queue: Any, **options: Any) -> Any:
    """An ASGI application to mount anywhere; the options are those of :class:`Dashboard`."""
    with needs("the dashboard", "Starlette", "dashboard"):
        from .asgi import DashboardApp

    return DashboardApp(Dashboard(queue, **options))


__all__ = ["ADMIN", "OPERATOR", "VIEWER", "Dashboard", "Principal", "Right", "dashboard"]
