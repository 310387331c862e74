"""What the migrations create, and what a schema lacks of it; what users added is no damage."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from laneway.inspection import Finding, Repair
from laneway.plan import Plan

# What the migrations create, read from their own text: each part with what puts it back.
#
# They are written in few forms, of which a test knows that all are understood: what this module
# expects of a new installation is all there, and nothing else is.

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


# Whether a definition says what ours does, however the database writes it down.
#
# Servers keep defaults, checks and views in words of their own, which differ between versions. What
# is compared here is what they all keep: values, names of columns, signs, and how many parts there
# are. A column that users added to a view is no change of ours.

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*') | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*") | (?P<name>[a-z_]\w*)
    | (?P<sign><>|!=|>=|<=|=|<|>)""",
    re.IGNORECASE | re.VERBOSE,
)
_CAST = re.compile(
    r"::\s*(?:double precision|timestamp with(?:out)? time zone|character varying|[a-z_]+)"
    r"(?:\(\d+\))?(?:\[\])?",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"\b[a-z_]\w*[`\"]?\.[`\"]?([a-z_]\w*)", re.IGNORECASE)
_HEAD = re.compile(
    r"create\s+(?:or\s+replace\s+)?view\s+(?:`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|[^\s`\"])+\s+as\s|",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LETTERS = re.compile(r"[a-z_ ]+")
_CALL = re.compile(r"[a-z_]+(?=\()")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_STRUCTURE = ("select", "where", "join", "union", "group", "having", "when")
# What a server may add, or write in another way, in a check.
_NOISE = {
    "check", "and", "any", "array", "between", "in", "is", "null", "not", "valid", "interval",
    "enforced",
}  # fmt: skip
# Values that servers write out.
_MOMENTS = {"epoch", "now", "infinity"}


class _Said(NamedTuple):
    names: frozenset[str]
    texts: frozenset[str]
    numbers: frozenset[float]
    signs: frozenset[str]
    structure: Counter[str]


def same_default(ours: str | None, theirs: str | None) -> bool:
    mine, other = _plain(ours), _plain(theirs)
    if ours is not None and "(" in ours and not ours.startswith("nextval"):
        return set(_CALL.findall(ours.lower())) <= set(_CALL.findall((theirs or "").lower()))
    return mine == other or _seconds(mine) == other


def same_check(ours: str, theirs: str) -> bool:
    mine, other = _said(ours), _said(theirs)
    return (
        mine.names - _NOISE == other.names - _NOISE
        and mine.texts == other.texts
        and mine.numbers == other.numbers
        and mine.signs == other.signs
    )


def same_view(ours: str, theirs: str | None) -> bool:
    """Also if they may not be seen."""
    if not theirs:
        return True
    query = _COMMENT.sub("", ours[_HEAD.match(ours).end() :])  # type: ignore[union-attr]
    mine, other = _said(query), _said(theirs)
    return (
        {name.lower() for name in _COLUMN.findall(query)} <= other.names
        and _words(mine.texts) == _words(other.texts)
        and bool(mine.texts) == bool(other.texts)
        and other.numbers <= mine.numbers | {0.0, 1.0}
        and mine.structure == other.structure
    )


def squeezed(text: str | None) -> str:
    """For a database that keeps what it was given: without what makes no difference."""
    plain = _COMMENT.sub("", text or "").replace("if not exists", "")
    return " ".join(plain.split()).lower().rstrip(";")


def _plain(text: str | None) -> str:
    plain = re.sub(r"[\s'\"`()]", "", _CAST.sub("", (text or "").lower()))
    if plain.startswith("nextval"):
        plain = plain.removeprefix("nextval").rpartition(".")[2]
    return {"null": "", "false": "0", "true": "1"}.get(plain, plain)


def _seconds(text: str) -> str | None:
    """A length of time as PostgreSQL writes it."""
    if found := re.fullmatch(r"(\d+)(second|minute|hour)s?", text):
        total = int(found[1]) * _SECONDS[found[2]]
        return f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"
    return None


def _said(text: str) -> _Said:
    names, texts, numbers, signs = set(), set(), set(), set()
    structure: Counter[str] = Counter()
    for token in _TOKEN.finditer(_CAST.sub("", _COMMENT.sub("", text))):
        word = token[0].lower()
        if token["text"] and re.fullmatch("'[0:]+'", word):
            numbers.add(0.0)  # of time
        elif token["number"] or _NUMBER.fullmatch(word.strip("'")):
            numbers.add(float(word.strip("'")))
        elif token["text"]:
            texts.add(word[1:-1])
        elif token["sign"]:
            signs.add("<>" if word == "!=" else word)
        elif token["quoted"]:  # also the name of a database, which may hold anything
            names.add(word[1:-1])
        else:
            names.add(word)
            structure.update([word] if word in _STRUCTURE else [])
            signs |= {"between": {">=", "<="}, "in": {"="}}.get(word, set())
    return _Said(
        frozenset(names), frozenset(texts), frozenset(numbers), frozenset(signs), structure
    )


def _words(texts: frozenset[str]) -> set[str]:
    return {text for text in texts if _LETTERS.fullmatch(text)} - _MOMENTS


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


class ShapeLook:
    """drift: is all there? Not asked again if it was ``age`` seconds ago."""

    _whole_at = float("-inf")

    def drift(self, age: float = 0.0) -> Plan[Finding]:
        now = time.monotonic()
        if now - self._whole_at < age:
            return drift_finding((), {})
        found = yield from self._found()
        lost = self._lost(found)
        self._whole_at = float("-inf") if lost else now
        return drift_finding(lost, found)

    def _found(self) -> Plan[Found]:
        raise NotImplementedError

    def _lost(self, found: Found) -> list[Part]:
        raise NotImplementedError


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
    if part.kind in ("index", "check"):
        return part.table in gone
    if part.kind != "view" or part.sql is None:
        return False
    words = set(re.findall(r"\w+", part.sql))
    return any(word == table or word.endswith(f"_{table}") for table in gone for word in words)
