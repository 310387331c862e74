"""SQL for SQLite: the schema's name is the prefix of every table, in place of ``laneway_``."""

import re
from functools import cache
from importlib.resources import files

from laneway.errors import InvalidName
from laneway.names import check_schema
from laneway.sqlfile import statements

MIGRATIONS = files(__package__) / "migrations"
STATEMENTS = statements(__package__)

# Comments may contain an apostrophe and literals a table's name: both are matched as a whole.
_TOKEN = re.compile(r"""--[^\n]*|'(?:[^']|'')*'|"laneway_(\w+)\"""")


def checked_schema(schema: object) -> str:
    name = check_schema(schema)
    if name.lower() == "sqlite":
        raise InvalidName("SQLite reserves names that begin with sqlite_: use another schema name")
    return name


def table(name: str, schema: str) -> str:
    """The quoted name of a table, index or view."""
    return '"' + f"{schema}_{name}".replace('"', '""') + '"'


def render(text: str, schema: str) -> str:
    """The SQL with the tables of this schema."""

    def replace(match: re.Match[str]) -> str:
        return table(match[1], schema) if match[1] else match[0]

    return _TOKEN.sub(replace, text)


@cache
def statement(name: str, schema: str) -> str:
    """A named statement of this package for this schema."""
    return render(STATEMENTS[name], schema)
