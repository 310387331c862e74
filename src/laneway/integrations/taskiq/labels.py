"""Labels of a task that say how its message is published."""

from collections.abc import Callable, Mapping
from typing import Any

# Taskiq sends labels as text; those of other brokers have the same names where they mean the same.
_OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "channel": ("channel", str),
    "queue_name": ("queue", str),
    "priority": ("priority", int),
    "delay": ("delay", float),
    "expires_in": ("expires_in", float),
    "key": ("key", str),
    "key_window": ("key_window", float),
    "max_attempts": ("max_attempts", int),
}


def publish_options(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``queue.publish`` among the labels."""
    return {
        option: convert(labels[label])
        for label, (option, convert) in _OPTIONS.items()
        if labels.get(label) is not None
    }
