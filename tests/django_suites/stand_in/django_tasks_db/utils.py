"""Locks on django-tasks-db's table: there is none here, and the tests of it are left out."""

from contextlib import AbstractContextManager

from django.db import transaction


def exclusive_transaction(using: str | None = None) -> AbstractContextManager[None]:
    return transaction.atomic(using=using)  # type: ignore[no-any-return]


def normalize_uuid(value: object) -> str:
    return str(value)
