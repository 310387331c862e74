"""A process that was forked has connections of its own.

Two processes on one socket get each other's answers, and a lock that another thread held at the
fork is never opened in the child. So the clients that came along start anew there; what they had
belongs to the parent, and is not even closed.
"""

import os
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class Forkable(Protocol):
    def start_anew(self, runner: Any) -> object:
        """Answers what it leaves behind."""
        ...


_openings: "WeakKeyDictionary[Forkable, Callable[[], Any]]" = WeakKeyDictionary()
_left_behind: list[object] = []


def start_anew_after_fork(core: Forkable, open_runner: Callable[[], Any]) -> None:
    _openings[core] = open_runner


def _start_all_anew() -> None:
    for core, open_runner in list(_openings.items()):
        _left_behind.append(core.start_anew(open_runner()))


os.register_at_fork(after_in_child=_start_all_anew)
