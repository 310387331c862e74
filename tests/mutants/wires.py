"""Defects on the way to the server: silent wires, connections that ended while idle, poolers."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, Patch, python

_NOTICED = "if process != connection.info.backend_pid:"
_QUIET = [
    ("return not poll.poll(0)", "return True"),
    ("CHECK_AFTER = 5.0", "CHECK_AFTER = 1e9"),
]
_silent = partial(python, faults="silent")

MUTANTS: list[Mutant] = [
    _silent("a call waits for a silent wire for ever", "stuck", "drivers/runner.py",
        ("return seconds * _LONG if seconds is not None and statement.long else seconds", "return None")),
    _silent("an answer that was lost passes for no write", "unexpected", "drivers/errors.py",
        ("if is_away(error) and sent:", "if False:")),
    _silent("MariaDB: a call waits for a silent wire for ever", "stuck", "drivers/runner.py",
        ("return seconds * _LONG if seconds is not None and statement.long else seconds", "return None"),
        engine="mariadb"),
    Mutant("connections that ended while idle are given out", frozenset({"needless_errors"}), [
        *(Patch("drivers/runner.py", *pair) for pair in _QUIET),
        # What the server never saw is sent again: with one of both nobody notices.
        Patch("drivers/errors.py", 'return _IDLE_TIMEOUT in (', 'return "" in (')], faults="idle"),
    python("MariaDB: connections that ended while idle are given out", "needless_errors",
        "drivers/runner.py", *_QUIET, faults="idle", engine="mariadb"),
    Mutant("a pooler that nobody announced goes unnoticed", frozenset({"needless_errors", "stuck"}), [
        Patch("drivers/psycopg/aio.py", _NOTICED, "if False:"),
        Patch("drivers/psycopg/sync.py", _NOTICED, "if False:")],
        faults="kill", through="pgbouncer-unannounced"),
]  # fmt: skip
