"""The Django app."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class LanewayConfig(AppConfig):  # type: ignore[misc]
    name = "laneway.integrations.django"
    label = "laneway"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Laneway"

    def ready(self) -> None:
        from .site_queue import empty_queue, make_way

        connection_created.connect(make_way, dispatch_uid="laneway")
        post_migrate.connect(empty_queue, sender=self, dispatch_uid="laneway")
