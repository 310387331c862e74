"""An exception from another process, from its names: retry strategies look at its type."""

import sys
from functools import reduce

from penstock.errors import HandlerFailed


def rebuilt(module: str, name: str, text: str) -> Exception:
    """The same type if it is known here, without running its ``__init__``; else HandlerFailed.
    Nothing is imported for it."""
    try:
        kind = reduce(getattr, name.split("."), sys.modules[module])
        if isinstance(kind, type) and issubclass(kind, Exception):
            error: Exception = kind.__new__(kind)
            error.args = (text,)
            return error
    except (KeyError, AttributeError, TypeError):
        pass
    return HandlerFailed(f"{module}.{name}: {text}")
