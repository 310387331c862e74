"""Errors as text that has an end: whatever a handler raises, it takes no time to show it.

The text, the chain of causes, the frames and the members of a group are cut before they are put
together, not after.
"""

import traceback
from collections.abc import Iterator
from types import TracebackType

from laneway.drivers.errors import masked

TEXT_CHARACTERS = 16 * 1024
"""Of an error's own text."""
TRACEBACK_CHARACTERS = 8 * 1024
LOG_CHARACTERS = 2000
"""Of an error's own text in a log line; its traceback is as long as a stored one."""
_CHAINED = 10
_FRAMES = 40
_FRAME_CHARACTERS = 1000
_IN_GROUP = 5
_DEPTH = 3
_NOTES = 5
_CUT = "… earlier frames were cut\n"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def said(error: BaseException, most: int = TEXT_CHARACTERS) -> str:
    """Its text, also if it has trouble with saying it."""
    try:
        return shortened(str(error), most)
    except Exception as trouble:
        return f"<no text: {type(trouble).__name__}>"


def shortened(text: str, most: int = LOG_CHARACTERS) -> str:
    """The beginning of a text, with its length if there is more."""
    if len(text) <= most:
        return text
    end = f"… ({len(text):,} characters)"
    return text[: most - len(end)] + end


def traceback_text(error: str | BaseException | None) -> str | None:
    """From the handler on; None for what was never raised."""
    if not isinstance(error, BaseException) or error.__traceback__ is None:
        return None
    return masked(rendered(error, _users_frame(error.__traceback__)))


def rendered(error: BaseException, trace: TracebackType | None) -> str:
    """As Python shows an error with this traceback, and no longer than a reader reads."""
    return "".join(_chain(error, trace, 0))


def cut_traceback(text: str) -> str:
    """What the database can hold, with the end kept: there the newest frame and the error are."""
    text = text[-2 * TRACEBACK_CHARACTERS :]
    text = text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode()
    if len(text) <= TRACEBACK_CHARACTERS:
        return text
    kept = text[len(_CUT) - TRACEBACK_CHARACTERS :]
    return _CUT + kept[kept.find("\n") + 1 :]


def _chain(error: BaseException, trace: TracebackType | None, depth: int) -> Iterator[str]:
    """The oldest first, as Python has it."""
    links: list[tuple[BaseException, str]] = [(error, "")]
    known = {id(error)}
    while (before := _before(links[-1][0])) is not None and id(before[0]) not in known:
        if len(links) == _CHAINED:
            yield "… earlier errors of the chain were cut\n\n"
            break
        known.add(id(before[0]))
        links.append(before)
    for number in range(len(links) - 1, -1, -1):
        one = links[number][0]
        yield from _one(one, one.__traceback__ if number else trace, depth)
        yield links[number][1]


def _before(error: BaseException) -> tuple[BaseException, str] | None:
    if error.__cause__ is not None:
        return error.__cause__, _CAUSE
    if error.__context__ is not None and not error.__suppress_context__:
        return error.__context__, _CONTEXT
    return None


def _one(error: BaseException, trace: TracebackType | None, depth: int) -> Iterator[str]:
    if trace is not None:
        yield "Traceback (most recent call last):\n"
        # The newest of them. A walk along the others costs next to nothing.
        stack = traceback.extract_tb(trace, limit=-_FRAMES)
        if len(stack) == _FRAMES:
            yield _CUT
        yield from (line[:_FRAME_CHARACTERS] for line in traceback.format_list(stack))
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    text = said(error, LOG_CHARACTERS)
    yield f"{module}{kind.__qualname__}{': ' if text else ''}{text}\n"
    notes = getattr(error, "__notes__", None)
    for note in notes[:_NOTES] if isinstance(notes, list) else ():
        yield shortened(str(note)) + "\n" if isinstance(note, str) else ""
    if isinstance(error, BaseExceptionGroup):
        yield from _members(error, depth + 1)


def _members(group: "BaseExceptionGroup[BaseException]", depth: int) -> Iterator[str]:
    count = len(group.exceptions)
    shown = group.exceptions[:_IN_GROUP] if depth <= _DEPTH else ()
    for number, error in enumerate(shown, 1):
        yield f"  +---------------- {number} of {count} ----------------\n"
        text = "".join(_chain(error, error.__traceback__, depth))
        yield "".join(f"  | {line}\n" for line in text.splitlines())
    if count > len(shown):
        yield f"  | … {count - len(shown):,} more errors of this group\n"


def _users_frame(trace: TracebackType) -> TracebackType:
    """The first frame that is not ours: a reader looks for the handler."""
    frame: TracebackType | None = trace
    while frame is not None:
        if not frame.tb_frame.f_globals.get("__name__", "").startswith("laneway."):
            return frame
        frame = frame.tb_next
    return trace
