"""Sentences for mistakes with the client that Python's own messages do not explain."""

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

_RENAMED = {"queue": "name", "coalesce": "group_commit"}


def refuse_unknown(client: type, unknown: dict[str, Any]) -> None:
    """For keyword arguments that the client does not have."""
    for name in unknown:
        known = list(inspect.signature(client).parameters)
        near = [_RENAMED[name]] if name in _RENAMED else get_close_matches(name, known, 1)
        hint = f"write {near[0]}=" if near else f"it has {', '.join(known[1:-1])}"
        raise TypeError(f"{client.__name__}() has no option {name}=: {hint}")


class WrongWith:
    """``with`` and ``async with`` on the client for which they are not meant; each client overrides
    the two methods that it has."""

    if not TYPE_CHECKING:  # type checkers know better without

        def __enter__(self):
            raise TypeError("AsyncQueue is for `async with`: without asyncio use Queue")

        def __exit__(self, *error): ...

        async def __aenter__(self):
            raise TypeError("Queue is for `with`: in asyncio code use AsyncQueue")

        async def __aexit__(self, *error): ...
