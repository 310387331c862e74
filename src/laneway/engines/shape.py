"""What the migrations create, read from their own text: each part with what puts it back.

They are written in few forms, of which a test knows that all are understood: what this module
expects of a new installation is all there, and nothing else is.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "type", "sequence", "table", "column", "primary key", "check", "index", "function", "view",
    "trigger",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they can be put back."""

_NAME = r"""(?:"laneway"\.|["`]laneway_|)["`]?(?P<name>\w+)["`]?"""
_COMMENT = re.compile(r"--[^\n]*")
_CREATE = re.compile(
    rf"""create\s+(?:or\s+replace\s+)?(?:unique\s+|unlogged\s+)?
    (?P<kind>table|index|view|function|sequence|type|trigger)\s+(?:if\s+not\s+exists\s+)?{_NAME}""",
    re.IGNORECASE | re.VERBOSE,
)
_ADD = re.compile(
    rf"alter\s+table\s+{_NAME}\s+add\s+column\s+(?:if\s+not\s+exists\s+)?(?P<column>.+)",
    re.IGNORECASE | re.DOTALL,
)
_PIECES = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\$\$.*?\$\$|;", re.DOTALL)
_PARTS = re.compile(r"'(?:[^']|'')*'|[(), ]")
_CHECK = re.compile(r"\bcheck\s*\(", re.IGNORECASE)
_TABLE_PARTS = re.compile(r"(primary\s+key|unique|check|constraint|foreign)\b\s*\(?", re.IGNORECASE)
_KEY = re.compile(r"(?:unique\s+)?(?:key|index)\s+(\w+)\s*\(", re.IGNORECASE)
_BODY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
_DEFAULT = re.compile(r"\b(default|generated|auto_increment)\b", re.IGNORECASE)


class Part(NamedTuple):
    """Of a table: ``table``. ``sql`` puts it back; None if that needs data that is lost. A function
    has its ``body``; a column, a check, a view and a trigger have their ``text``, and a column has
    its ``default``. ``mend`` changes one that is there, but was changed; None if it cannot be."""

    kind: Kind
    name: str
    table: str | None = None
    sql: str | None = None
    body: str | None = None
    text: str | None = None
    default: str | None = None
    mend: str | None = None

    def rendered(self, render: Callable[[str], str]) -> "Part":
        """For another schema than ``laneway``."""
        texts = (text and render(text) for text in self[3:])
        return Part(self.kind, self.name, self.table, *texts)

    def __str__(self) -> str:
        if self.kind == "primary key":
            return f"the primary key of {self.name}"
        return f"{self.kind} {self.name}"


def parts_of(script: str, table_name: Callable[[str], str]) -> dict[tuple[Kind, str], Part]:
    """All that the script creates, in its final form; ``table_name`` is how the script writes the
    name of a table."""
    parts: dict[tuple[Kind, str], Part] = {}
    for text in _statements(script):
        for part in _parts(text, table_name):
            parts[part.kind, part.name] = part
    return parts


def _statements(script: str) -> Iterator[str]:
    start, kept = 0, ""
    for match in _PIECES.finditer(script):
        if match[0] != ";":
            continue
        kept += script[start : match.end()]
        start = match.end()
        text = _without_comments(kept).strip().rstrip(";").strip()
        if re.match(r"create\s+trigger", text, re.IGNORECASE) and not text.lower().endswith("end"):
            continue  # one statement with others in it
        kept = ""
        if text:
            yield text


def _without_comments(text: str) -> str:
    """But for those in the bodies of functions, which are a part of them."""
    return _PIECES.sub(lambda found: "" if found[0].startswith("--") else found[0], text)


def _parts(text: str, table_name: Callable[[str], str]) -> Iterator[Part]:
    if added := _ADD.match(text):
        table = added["name"]
        yield _column(added["column"].strip(), table, table_name(table))
        yield from _checks(added["column"], table, table_name(table))
        return
    created = _CREATE.match(text)
    if created is None:
        return
    kind: Kind = created["kind"].lower()  # type: ignore[assignment]
    name = created["name"]
    body = _BODY.search(text) if kind == "function" else None
    on = re.search(rf"\son\s+{_NAME}", text, re.IGNORECASE) if kind == "index" else None
    mend = re.sub(r"^create (?=view)", "create or replace ", text)
    on_table, said = on["name"] if on else None, body[1] if body else None
    yield Part(kind, name, on_table, text, said, text, mend=mend)
    inside = text[created.end() :].strip()
    if kind == "table" and inside.startswith("("):
        yield from table_parts(inside, name, table_name(name))


def table_parts(inside: str, table: str, written: str) -> Iterator[Part]:
    """What stands in a table's parentheses."""
    keyed = False
    for element in _elements(inside):
        if key := _KEY.match(element):
            yield Part("index", key[1], table, f"alter table {written} add {element}")
            continue
        if found := _TABLE_PARTS.match(element):
            keyed = keyed or found[1].lower().startswith("primary")
        else:
            keyed = keyed or bool(re.search(r"primary\s+key", element, re.IGNORECASE))
            yield _column(element, table, written)
        yield from _checks(element, table, written)
    if keyed:
        yield Part("primary key", table, table)


def _checks(element: str, table: str, written: str) -> Iterator[Part]:
    for found in _CHECK.finditer(element):
        (said,) = _elements(element[found.end() - 1 :], whole=True)
        sql = f"alter table {written} add check ({said})"
        yield Part("check", f"({said}) of {table}", table, sql, text=said)


def _column(element: str, table: str, written: str) -> Part:
    name = element.split(None, 1)[0].strip('"`')
    needs_value = re.search(r"not\s+null|primary\s+key", element, re.IGNORECASE)
    lost = needs_value and not _DEFAULT.search(element)
    sql = None if lost else f"alter table {written} add column {element}"
    default = _default(element)
    mend = f"alter table {written} alter column {name} " + (
        "drop default" if default is None else f"set default {default}"
    )
    return Part("column", f"{table}.{name}", table, sql, None, element, default, mend)


def _default(element: str) -> str | None:
    """A value, a call, or what stands in parentheses."""
    found = re.search(r"\bdefault\s+", element, re.IGNORECASE)
    if found is None:
        return None
    rest = element[found.end() :]
    depth = 0
    for match in _PARTS.finditer(rest + " "):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == " " and depth == 0 and match.start() > 0:
            return rest[: match.start()]
    return rest


def _elements(inside: str, whole: bool = False) -> Iterator[str]:
    """What stands between the commas of a table's parentheses, or all in them as a ``whole``."""
    depth, start = 0, 1
    for match in _PARTS.finditer(inside):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
        if (match[0] == "," and depth == 1 and not whole) or (match[0] == ")" and depth == 0):
            yield inside[start : match.start()].strip()
            start = match.end()
        if depth == 0:
            return
