"""A name for Django's permissions and admin; the messages are in Laneway's own tables."""

from django.db import models


class QueuedTask(models.Model):  # type: ignore[misc]
    """A task that waits, runs or has failed. Who may view it in the admin sees them, who may change
    it may retry and cancel them."""

    class Meta:
        managed = False
        default_permissions = ("view", "change")
        verbose_name = "task"
        verbose_name_plural = "tasks"
