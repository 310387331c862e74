"""The log of many runs as a table."""

import json
import subprocess
import sys
from pathlib import Path

from laneway.dev.chaos.checker import check
from tests.chaos.forged_run import Forger

SCRIPT = Path(__file__).parents[2] / "scripts" / "chaos_long.py"


def _line(forger: Forger, engine: str, server: str) -> str:
    forger.dump["server"] = server
    terms = {"engine": engine, "seed": 1, "seconds": 60, "faults": None, "through": None}
    return json.dumps({**terms, **check(forger.lines, forger.dump)})


def test_a_column_for_each_database_and_what_was_broken(tmp_path: Path) -> None:
    good, bad = Forger(), Forger()
    for forger in (good, bad):
        forger.done(1, 1, 100.0)
    bad.publish(2, 200.0)
    log = tmp_path / "chaos.jsonl"
    lines = [_line(good, "sqlite", "SQLite 3"), _line(good, "sqlite", "SQLite 3")]
    log.write_text("\n".join([*lines, _line(bad, "mariadb", "MariaDB 11")]))
    command = [sys.executable, str(SCRIPT), "table", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = {row.split(" | ")[0]: row.split(" | ")[1:] for row in done.stdout.splitlines()}
    assert rows["| "] == ["MariaDB 11", "SQLite 3 |"]
    assert rows["| runs"] == ["1 of 60 s", "2 of 60 s |"]
    assert rows["| lost"] == ["1", "0 |"]
    assert rows["| any rule broken"] == ["1", "0 |"]
    assert rows["| bound per start"] == ["", "< 1.5e+00 |"]
