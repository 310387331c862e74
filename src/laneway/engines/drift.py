"""What a schema lacks of what its migrations created; what users added is no damage."""

import re
from collections.abc import Callable, Mapping, Sequence

from laneway.inspection import Finding, Repair

from .definitions import same_check, same_default, same_view
from .shape import KINDS, Kind, Part

Parts = Mapping[tuple[Kind, str], Part]
Found = Mapping[tuple[str, str], str | None]
"""Kind and name of all that is there, with the bodies of functions, which may share a name, and the
checks of a table in a row; the defaults of columns, and what views say."""

Same = Callable[[Part, str | None], bool]
"""Whether what is there says what the part does."""

BETWEEN = "\0"

_NAMED = 10  # in one sentence


def same(part: Part, found: str | None) -> bool:
    """On a server, which writes definitions down in words of its own."""
    if part.kind == "column":
        return same_default(part.default, found)
    if part.kind == "view":
        return same_view(part.text or "", found)
    return part.body is None or part.body in _bodies(found)


def missing(expected: Parts, found: Found, same: Same = same) -> list[Part]:
    """Those that are not there, and those that say something else; without what is a part of a
    table that is missing itself. In the order in which they can be put back: with their ``sql``.
    Those without it cannot be, nor can what stands on them."""
    lost = []
    for key, part in expected.items():
        if part.kind == "check":
            checks = _bodies(found.get(("check", part.table or "")))
            lost += [] if any(same_check(part.text or "", check) for check in checks) else [part]
        elif key not in found:
            lost.append(part)
        elif not same(part, found[key]):
            lost.append(part if part.kind == "function" else part._replace(sql=part.mend))
    tables = {part.name for part in lost if part.kind == "table"}
    lost = [
        part
        for part in lost
        if part.table not in tables or (part.kind == "index" and _is_apart(part))
    ]
    gone = {
        part.table
        for part in lost
        if part.kind == "column" and part.sql is None and ("column", part.name) not in found
    }
    lost = [part._replace(sql=None) if _stands_on(part, gone) else part for part in lost]
    return sorted(lost, key=lambda part: KINDS.index(part.kind))


def drift_finding(lost: Sequence[Part], found: Found) -> Finding:
    words = [describe(part, found) for part in lost]
    if not words:
        says = "All tables, columns, indexes, views and functions are there, as they should be."
        return Finding("shape", "ok", says)
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    says = f"Missing or changed: {', '.join(words[:_NAMED])}{more}."
    return Finding("shape", "fail", says, "laneway upgrade --repair")


def describe(part: Part, found: Found) -> str:
    return f"{part}, which was changed" if (part.kind, part.name) in found else str(part)


def repaired(part: Part, found: Found) -> Repair:
    return Repair(describe(part, found), part.sql is not None)


def _bodies(found: str | None) -> list[str]:
    return (found or "").split(BETWEEN)


def _is_apart(part: Part) -> bool:
    """Created by a statement of its own, not with its table."""
    return part.sql is not None and part.sql.lower().startswith("create")


def _stands_on(part: Part, gone: set[str | None]) -> bool:
    if part.kind == "index":
        return part.table in gone
    if part.kind != "view" or part.sql is None:
        return False
    words = set(re.findall(r"\w+", part.sql))
    return any(word == table or word.endswith(f"_{table}") for table in gone for word in words)
