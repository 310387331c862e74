"""The Django app."""

from django.apps import AppConfig


class PenstockConfig(AppConfig):  # type: ignore[misc]
    name = "penstock.integrations.django"
    label = "penstock"
    verbose_name = "Penstock"
