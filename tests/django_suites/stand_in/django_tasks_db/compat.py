from django.tasks.base import Task

__all__ = ["Task"]
