"""The permissions to view and change tasks in the admin; no table."""

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc]
    dependencies = [("laneway", "0001_install")]  # noqa: RUF012
    operations = [  # noqa: RUF012
        migrations.CreateModel(
            name="QueuedTask",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "managed": False,
                "default_permissions": ("view", "change"),
            },
        ),
    ]
