"""How far a handler is: checked, and noted until the lease is next extended."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from laneway.errors import InvalidOption, shown
from laneway.inspection import MessageInfo
from laneway.model import Progress, ProgressNote

from .checks import check_storable

MOST_NOTE = 500
"""Characters; the rest of a note is cut off."""


def checked_progress(share: Any, note: Any) -> tuple[float | None, str | None]:
    if share is not None:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 <= share <= 1:
            raise InvalidOption(
                f"the progress is {shown(share)}: give a share from 0 to 1, or None"
            )
    elif note is None:
        raise InvalidOption("give a share from 0 to 1, a note, or both")
    said = None if note is None else check_storable("note", note, MOST_NOTE)
    return None if share is None else float(share), said


def notes_of(messages: Iterable[Any]) -> list[ProgressNote]:
    """What the holders said since the last time."""
    noted = ((message, getattr(message, "_progress", None)) for message in messages)
    return [ProgressNote(m.id, m.fence, *said) for m, said in noted if said is not None]


def with_progress(info: MessageInfo, progress: Progress | None) -> MessageInfo:
    """If it is of the same lease."""
    if progress is None or progress.fence != info.fence:
        return info
    return replace(info, progress=progress)
