"""Tracebacks as text, for dead letters: without passwords, cut so that the newest frames stay."""

import traceback
from types import TracebackType

from laneway.drivers.errors import masked

TRACEBACK_CHARACTERS = 8 * 1024
_CUT = "… earlier frames were cut\n"


def traceback_text(error: str | BaseException | None) -> str | None:
    """None for what was never raised."""
    if not isinstance(error, BaseException) or error.__traceback__ is None:
        return None
    first = _users_frame(error.__traceback__)
    try:
        lines = traceback.format_exception(type(error), error, first)
    except Exception:  # an exception that cannot show itself
        lines = traceback.format_tb(first)
    return masked("".join(lines))


def _users_frame(trace: TracebackType) -> TracebackType:
    """The first frame that is not ours: a reader looks for the handler."""
    frame: TracebackType | None = trace
    while frame is not None:
        if not frame.tb_frame.f_globals.get("__name__", "").startswith("laneway."):
            return frame
        frame = frame.tb_next
    return trace


def cut_traceback(text: str) -> str:
    """What the database can hold, with the end kept: there the newest frame and the error are."""
    text = text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode()
    if len(text) <= TRACEBACK_CHARACTERS:
        return text
    kept = text[len(_CUT) - TRACEBACK_CHARACTERS :]
    return _CUT + kept[kept.find("\n") + 1 :]
