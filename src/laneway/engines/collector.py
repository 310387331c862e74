"""Python's garbage collector, held back for a moment.

Whoever makes thousands of objects that are needed afterwards makes the collector look through all
that the process has, every few hundred of them, and find nothing: milliseconds each time, in which
a server that waits for the rest of a batch has nothing to do.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

# One entry for each thread that holds it back; the last one lets it go. Adding and taking are
# atomic, so whatever threads do in between, it is never left held back.
_holding: list[None] = []


@contextmanager
def no_collection() -> Iterator[None]:
    """For milliseconds without a wait. Changes nothing where the program has switched it off."""
    if not _holding and not gc.isenabled():
        yield
        return
    _holding.append(None)
    gc.disable()
    try:
        yield
    finally:
        _holding.pop()
        if not _holding:
            gc.enable()


def _let_go() -> None:
    """A thread that held it back while another one forked does not exist in the child."""
    if _holding:
        _holding.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
