"""SQL files, with the schema's name as the prefix of every table in place of ``penstock_``."""

import re
from functools import cache
from importlib.resources import files

from penstock.errors import InvalidName
from penstock.names import check_schema

FOLDER = files(__package__)

# A comment may hold an apostrophe, a literal may hold a name: read each as a whole.
_TOKEN = re.compile(r"""--[^\n]*|'(?:[^']|'')*'|"penstock_(\w+)\"""")


def checked_schema(schema: object) -> str:
    name = check_schema(schema)
    if name.lower() == "sqlite":
        raise InvalidName("SQLite keeps names that begin with sqlite_ to itself: use another one")
    return name


def table(name: str, schema: str) -> str:
    """The quoted name of a table, index or view."""
    return '"' + f"{schema}_{name}".replace('"', '""') + '"'


def render(text: str, schema: str) -> str:
    """The text for any legal schema name."""

    def replace(match: re.Match[str]) -> str:
        return table(match[1], schema) if match[1] else match[0]

    return _TOKEN.sub(replace, text)


@cache
def query(name: str, schema: str) -> str:
    """The query in ``queries/<name>.sql`` for this schema."""
    return render(template(name), schema)


def template(name: str) -> str:
    """The query as it is in the file, without the comment that opens it."""
    lines = (FOLDER / "queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()
