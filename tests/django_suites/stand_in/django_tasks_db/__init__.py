"""In place of django-tasks-db, for its own tests: the same names, with Laneway behind them."""

from laneway.integrations.django.tasks import LanewayBackend as DatabaseBackend

__all__ = ["DatabaseBackend"]
