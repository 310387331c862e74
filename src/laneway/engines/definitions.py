"""Whether a definition says what ours does, however the database writes it down.

Servers keep defaults, checks and views in words of their own, which differ between versions. What
is compared here is what they all keep: values, names of columns, signs, and how many parts there
are. A column that users added to a view is no change of ours.
"""

import re
from collections import Counter
from typing import NamedTuple

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
_COMMENT = re.compile(r"--[^\n]*")
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
