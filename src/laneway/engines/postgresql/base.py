"""The base of all groups of verbs: statements with the schema's real name, and the clock."""

import re
from functools import cache
from typing import Any

from laneway.clock import Clock, Clocked
from laneway.names import check_schema
from laneway.plan import Statement
from laneway.sqlfile import statements

# SQL with the schema's real name in place of ``"laneway"``.

# A comment may hold an apostrophe, a literal may hold the schema: read each as a whole.
_SCHEMA = '"laneway"'
_NAME = re.compile(r'"laneway(_[a-z]+)?"')
_TOKEN = re.compile(rf"""--[^\n]*|'(?:[^']|'')*'|{_NAME.pattern}|\$\$""")

# All that may change something: what functions of ours do is not looked at.
_WRITES = re.compile(
    r"""\b(insert|update|delete|merge|create|alter|drop|truncate|grant|revoke|set|lock|call|do)\b"""
    r"""|\bpg_(?!size|relation|total|stat|get|is)\w*\(|nextval|set_config"""
    # A function may write, but for these.
    r"""|"laneway"\.(?!(?:look_\w+|channel_names|minutes)_v1\b)\w+\s*\(""",
    re.IGNORECASE,
)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def render(text: str, schema: str, prefix: str = "") -> str:
    """The text for any legal schema name; ``prefix`` is that of role names."""
    dollar = _dollar_quote(schema + prefix)

    def name(match: re.Match[str]) -> str:
        role = match.group().strip('"').removeprefix("laneway")
        return prefix + role if role else quoted(schema)

    def replace(match: re.Match[str]) -> str:
        token = match.group()
        if token == "$$":
            return dollar
        if token.startswith("--"):
            return token
        if token.startswith("'"):
            return _NAME.sub(lambda found: name(found).replace("'", "''"), token)
        return name(match) if token == _SCHEMA else quoted(name(match))

    return _TOKEN.sub(replace, text)


@cache
def statement(name: str, schema: str) -> str:
    """The named statement of this engine, for this schema."""
    return render(template(name), schema)


@cache
def only_reads(name: str) -> bool:
    """Whether the named statement can be sent again when its answer was lost."""
    return _WRITES.search(template(name)) is None


def template(name: str) -> str:
    """The same with the schema still called ``"laneway"``."""
    return statements(__package__)[name]


def _dollar_quote(schema: str) -> str:
    """What function bodies are quoted with: nothing that occurs in the schema's name."""
    tag = "$$"
    while tag in schema:
        tag = f"$_{tag[1:]}"
    return tag


class PostgresqlSql(Clocked):
    """``clock`` replaces the database's clock, for tests."""

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        self.schema = check_schema(schema)
        self._own_clock = clock

    def statement(self, name: str, *params: Any) -> Statement:
        return Statement(statement(name, self.schema), params, reads=only_reads(name))

    def statement_now(self, name: str, *params: Any) -> Statement:
        """With the time as the last parameter; null means the database's clock."""
        now = self._clock() if self._clock else None
        return Statement(statement(name, self.schema), (*params, now), reads=only_reads(name))
