"""A process of the lake that dies by SIGKILL just before the n-th call of a named kind."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from laneway.lake import Lake, catalog_databases, purge, rewrite, sync
from laneway.lake.folder import Folder
from laneway.stores import Store

LOADED = (catalog_databases, purge, rewrite, sync)
"""Before the processes are forked."""


def main(url: str, schema: str, lake_name: str, root: str, step: str, point: str) -> None:
    """``step`` may name a channel: ``erase tenant-42``."""
    where, verb, count = point.split(":")
    name, _, channel = step.partition(" ")
    lake = Lake(url, root, schema=schema, name=lake_name)
    if where in ("ask", "tell"):
        method = "ask_with_names" if where == "ask" else "tell"
        _lay_trap(Store, method, int(count), lambda arguments: arguments[1] == verb)
    else:
        _lay_trap(Folder, verb, int(count), lambda arguments: True)
    steps: dict[str, Callable[[], object]] = {
        "sync": lambda: lake.sync(700),
        "compact": lambda: lake.compact(timedelta(0)),
        "purge": lambda: lake.purge(timedelta(days=1)),
        "erase": lambda: lake.erase(channel),
    }
    steps[name]()


def _lay_trap(
    owner: type, method: str, count: int, matches: Callable[[tuple[Any, ...]], bool]
) -> None:
    original = getattr(owner, method)
    left = [count]

    def trapped(*arguments: Any, **named: Any) -> Any:
        if matches(arguments):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(owner, method, trapped)
