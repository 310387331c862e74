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
# A server's wait_timeout holds for connections that come later: chaos meets one only by luck.
_MARIADB_IDLE = "tests/client/test_idle.py::test_mariadb_ends_idle_connections"
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
        Patch("drivers/errors.py", 'or _IDLE_TIMEOUT in (', 'or "" in (')], faults="idle"),
    Mutant("MariaDB: connections that ended while idle are given out", frozenset({"test"}), [
        *(Patch("drivers/runner.py", *pair) for pair in _QUIET),
        # What was lost before its commit is sent again: with one of these nobody notices.
        Patch("drivers/mysql/sync.py", "must_repeat(error) or (lost and tries == 1)", "must_repeat(error)"),
        Patch("drivers/mysql/sync.py", "if not (is_away(error) and all(map(_only_reads, sent))):", "if True:")],
        engine="mariadb", test=_MARIADB_IDLE),
    Mutant("a pooler that nobody announced goes unnoticed", frozenset({"needless_errors", "stuck"}), [
        Patch("drivers/psycopg/aio.py", _NOTICED, "if False:"),
        Patch("drivers/psycopg/sync.py", _NOTICED, "if False:")],
        faults="kill", through="pgbouncer-unannounced"),
]  # fmt: skip
