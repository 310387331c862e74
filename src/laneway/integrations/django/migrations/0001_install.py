"""Installs Laneway's schema, or upgrades it: also safe if it is there already."""

from typing import Any

from django.db import migrations


def install(apps: Any, schema_editor: Any) -> None:
    from laneway.integrations.django import queue

    if schema_editor.connection.alias == queue.connection.alias:
        # Closed at once: a test's database is copied and dropped later.
        with queue.open_client() as client:
            client.install()


class Migration(migrations.Migration):  # type: ignore[misc]
    # On a connection of Laneway's own, which waits for nothing of Django's.
    atomic = False
    dependencies: list[tuple[str, str]] = []  # noqa: RUF012
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]  # noqa: RUF012
