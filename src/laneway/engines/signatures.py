"""The signature of an error: the same for the same defect, whichever numbers and ids are in it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from laneway.inspection import DeadLetterGroup, DeadLetterGroups

LOOKED = 10_000
"""How many dead letters are grouped: the newest."""
ERROR_START = 400
"""How much of an error's text is read for it."""
_LENGTH = 200

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_HEX = re.compile(r"\b(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b")
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class CountedError:
    """Dead letters of one queue and kind that begin with the same text."""

    queue: str
    kind: str
    reason: str
    error_type: str | None
    error: str | None
    count: int
    oldest: datetime
    newest: datetime
    example: int


def signature(error: str | None) -> str:
    """The last line of what is known of it, with numbers and ids masked."""
    lines = (error or "").strip().splitlines()
    text = _UUID.sub("<id>", lines[-1] if lines else "")
    text = _HEX.sub("<id>", _ADDRESS.sub("<address>", text))
    return _NUMBER.sub("#", text)[:_LENGTH]


def grouped(counted: Iterable[CountedError], limit: int, most: int = LOOKED) -> DeadLetterGroups:
    """The largest groups first, of the newest ``most``."""
    found: dict[tuple[str | None, ...], DeadLetterGroup] = {}
    looked = 0
    for one in counted:
        looked += one.count
        said = signature(one.error)
        key = (one.queue, one.kind, one.reason, one.error_type, said)
        if key not in found:
            found[key] = DeadLetterGroup(
                one.queue,
                one.kind,
                one.reason,
                one.error_type,
                said,
                one.count,
                one.oldest,
                one.newest,
                one.example,
            )
            continue
        known = found[key]
        found[key] = replace(
            known,
            count=known.count + one.count,
            oldest=min(known.oldest, one.oldest),
            newest=max(known.newest, one.newest),
            example=one.example if one.newest > known.newest else known.example,
        )
    groups = sorted(found.values(), key=lambda group: (-group.count, group.queue, group.kind))
    return DeadLetterGroups(groups[:limit], looked, looked < most)
