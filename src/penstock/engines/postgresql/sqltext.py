"""SQL files, with the schema's name in place of ``"penstock"``."""

import re
from functools import cache
from importlib.resources import files

FOLDER = files(__package__)

# A comment may hold an apostrophe, a literal may hold the schema: read each as a whole.
_SCHEMA = '"penstock"'
_NAME = re.compile(r'"penstock(_[a-z]+)?"')
_TOKEN = re.compile(rf"""--[^\n]*|'(?:[^']|'')*'|{_NAME.pattern}|\$\$""")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def render(text: str, schema: str, prefix: str = "") -> str:
    """The text for any legal schema name; ``prefix`` is that of role names."""
    dollar = _dollar_quote(schema + prefix)

    def name(match: re.Match[str]) -> str:
        role = match.group().strip('"').removeprefix("penstock")
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
def query(name: str, schema: str) -> str:
    """The query in ``queries/<name>.sql`` for this schema."""
    return render(template(name), schema)


def template(name: str) -> str:
    """The query as it is in the file, without the comment that opens it."""
    lines = (FOLDER / "queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()


def _dollar_quote(schema: str) -> str:
    """What function bodies are quoted with: nothing that occurs in the schema's name."""
    tag = "$$"
    while tag in schema:
        tag = f"$_{tag[1:]}"
    return tag
