"""Writes what each engine lacks into docs/reference/databases.md; with --check only compares."""

import argparse
import re
import sys
from pathlib import Path
from typing import get_args

from laneway.contract import Ability
from laneway.engines.mysql import MysqlEngine
from laneway.engines.postgresql import PostgresqlEngine
from laneway.engines.sqlite import SqliteEngine

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/databases.md"
ENGINES = {
    "PostgreSQL": PostgresqlEngine,
    "MySQL / MariaDB": MysqlEngine,
    "SQLite": SqliteEngine,
}
_MARKED = re.compile(r"(?<=<!-- abilities -->\n).*(?=<!-- end -->)", re.DOTALL)


def table() -> str:
    lines = [f"| | {' | '.join(ENGINES)} |", "|---" * (len(ENGINES) + 1) + "|"]
    for ability in get_args(Ability):
        cells = ["no" if ability in engine.lacks else "yes" for engine in ENGINES.values()]
        lines.append(f"| {ability} | {' | '.join(cells)} |")
    reasons = [
        f"- {name}, {ability}: {reason}."
        for name, engine in ENGINES.items()
        for ability, reason in engine.lacks.items()
    ]
    return "\n".join([*lines, "", *reasons, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    check = parser.parse_args().check
    old = PAGE.read_text(encoding="utf-8")
    new = _MARKED.sub(lambda _: table(), old)
    if new == old:
        return 0
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    print(f"{PAGE.name} {'is out of date: run make sync' if check else 'written'}")
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
