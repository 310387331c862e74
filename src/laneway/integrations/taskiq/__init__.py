"""Taskiq on Laneway: a broker, a result backend and a source of schedules.

>>> broker = LanewayBroker("postgresql://localhost/shop").with_result_backend(
...     LanewayResultBackend("postgresql://localhost/shop")
... )
"""

from laneway.extras import needs

with needs("laneway.integrations.taskiq", "taskiq", "taskiq"):
    import taskiq as _taskiq  # noqa: F401

from .broker import LanewayBroker
from .results import LanewayResultBackend, TaskResultMissing
from .schedules import LanewayScheduleSource

__all__ = ["LanewayBroker", "LanewayResultBackend", "LanewayScheduleSource", "TaskResultMissing"]
