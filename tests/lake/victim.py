"""A process of the lake that dies by SIGKILL just before the n-th call of a named kind."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from laneway.lake import Lake, catalog_databases, compact, purge, sync
from laneway.lake.folder import Folder
from laneway.stores import Store

LOADED = (compact, catalog_databases, purge, sync)
"""Before the processes are forked."""


def main(url: str, schema: str, name: str, root: str, step: str, point: str) -> None:
    where, verb, count = point.split(":")
    lake = Lake(url, root, schema=schema, name=name)
    if where in ("ask", "tell"):
        method = "ask_with_names" if where == "ask" else "tell"
        _lay_trap(Store, method, int(count), lambda arguments: arguments[1] == verb)
    else:
        _lay_trap(Folder, verb, int(count), lambda arguments: True)
    steps: dict[str, Callable[[], object]] = {
        "sync": lambda: lake.sync(700),
        "compact": lambda: lake.compact(timedelta(0)),
        "purge": lambda: lake.purge(timedelta(days=1)),
    }
    steps[step]()


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
