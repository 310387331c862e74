"""The nemesis itself holds nobody up for longer than it says."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Thread

from laneway.dev.chaos.app_connection import WAIT, Blocker
from laneway.dev.chaos.config import RunConfig


def test_it_does_not_wait_for_who_waits_for_it(tmp_path: Path) -> None:
    """SQLite's file is held by a stopped process, or by the nemesis's last lock, and the next lock
    fault comes: only the nemesis can end that, so it must not wait as an application would."""
    file = tmp_path / "chaos.db"
    config = RunConfig("sqlite", f"sqlite:///{file}", "controller", 1, str(tmp_path))
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("begin immediate")
        waiting = Thread(target=Blocker(config).lock, daemon=True)
        waiting.start()
        waiting.join(WAIT / 2)
        gave_up = not waiting.is_alive()
    waiting.join()
    assert gave_up
