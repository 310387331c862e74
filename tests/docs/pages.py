"""The fenced blocks of the pages, with the comments that say how a block is to be run.

A comment in the line above a block:

``<!-- not run: reason -->``         the block is only shown; the reason is required
``<!-- runs until stopped -->``      a command that goes on: started, and stopped when the page ends
``<!-- exit codes: 0 1 3 -->``       the commands may end with these; without it, only with 0
``<!-- on mariadb -->``              SQL for MySQL and MariaDB

A block below a line that is only a file name in backticks and a colon is that file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PYTHON = ("python",)
SHELL = ("sh", "console")
PARSED = ("toml", "yaml", "ini", "json")
# What a fence may say. The rest is an error: a block without a language would not be run.
LANGUAGES = (*PYTHON, *SHELL, *PARSED, "sql", "text")
# A reader pastes these into the interactive interpreter.
PASTED = ("README.md", "docs/tutorial.md")

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (.*?) -->$")
_FILE = re.compile(r"^`([\w./-]+)`:$")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    comment: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def not_run(self) -> str:
        """The reason why it is only shown."""
        return self.comment.removeprefix("not run: ") if "not run" in self.comment else ""

    @property
    def until_stopped(self) -> bool:
        return self.comment == "runs until stopped"

    @property
    def on_mariadb(self) -> bool:
        return self.comment == "on mariadb"

    @property
    def exit_codes(self) -> tuple[int, ...]:
        if not self.comment.startswith("exit codes: "):
            return (0,)
        return tuple(map(int, self.comment.removeprefix("exit codes: ").split()))


def pages() -> list[str]:
    """Every page of the project, by its path from the root."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found if page.name != "CHANGELOG.md")


def uses_spark(page: str) -> bool:
    """Those pages are read in tests/spark, where a session runs."""
    return any(b.language in PYTHON and "laneway.spark" in b.code for b in blocks(page))


def blocks(page: str) -> list[Block]:
    return list(_blocks(page))


def _blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text()
    for fence in _FENCE.finditer(text):
        above = text[: fence.start()].splitlines()
        comment, file = "", ""
        while above and (not above[-1] or _COMMENT.match(above[-1]) or _FILE.match(above[-1])):
            last = above.pop()
            if found := _COMMENT.match(last):
                comment = found[1]
            elif found := _FILE.match(last):
                file = found[1]
                break
        line = text.count("\n", 0, fence.start()) + 1
        yield Block(page, line, fence[1], fence[2], comment, file)
