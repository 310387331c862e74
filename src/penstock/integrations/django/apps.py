"""The Django app."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class PenstockConfig(AppConfig):  # type: ignore[misc]
    name = "penstock.integrations.django"
    label = "penstock"
    verbose_name = "Penstock"

    def ready(self) -> None:
        from .clients import make_way

        connection_created.connect(make_way, dispatch_uid="penstock")
