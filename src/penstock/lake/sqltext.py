"""The Spark SQL of the report: one file per table."""

from functools import cache
from importlib.resources import files
from typing import Literal

Kind = Literal["tables", "answers"]


@cache
def statement(kind: Kind, name: str) -> str:
    """The statement in ``<kind>/<name>.sql``."""
    return (files(__package__) / kind / f"{name}.sql").read_text(encoding="utf-8")
