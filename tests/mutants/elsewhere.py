"""Defects of the engines on SQLite and MariaDB, where the code is another."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, Patch, python

_SQLITE, _MYSQL = "engines/sqlite", "engines/mysql"
_on_sqlite = partial(python, engine="sqlite")
_on_mariadb = partial(python, engine="mariadb")
_UNFENCED = [
    Patch(f"{_SQLITE}/queries/{name}.sql", "where fence = $1 and message_id in",
          "where $1 is not null and message_id in")
    for name in ("leases_of", "release")
]  # fmt: skip

MUTANTS: list[Mutant] = [
    Mutant("SQLite: settling is not fenced", frozenset({"stale_accepted"}), [
        *_UNFENCED,
        Patch(f"{_SQLITE}/queries/leases_of.sql", "select message_id, fence,", "select message_id, $1,")],
        engine="sqlite"),
    _on_sqlite("SQLite: a claim takes no slot", "over_limit sampled", f"{_SQLITE}/lanes.py",
        ("leased = self.leased + len(self.taken)", "leased = self.leased")),
    _on_sqlite("SQLite: the rate refills twice as fast", "rate_excess", f"{_SQLITE}/lanes.py",
        ("math.ceil(started / self.rate * 1e6 - 1e-3)", "math.ceil(started / self.rate / 2 * 1e6 - 1e-3)")),
    _on_sqlite("SQLite: priorities are ignored", "priorities", f"{_SQLITE}/lanes.py",
        ("key=lambda start: (-start[0], *start[1:])", "key=lambda start: start[1:]")),
    _on_sqlite("SQLite: an extension shortens", "expired_early", f"{_SQLITE}/queries/extend.sql",
        ("max(until, $3)", "$3")),
    _on_sqlite("SQLite: one failed try too many", "budget", f"{_SQLITE}/settling.py",
        ("failed and fate.spent + 1 >= fate.max_attempts", "failed and fate.spent >= fate.max_attempts")),
    _on_sqlite("SQLite: what is put back is not counted", "stuck", f"{_SQLITE}/ending.py",
        ("moves.add(fate.channel_id, more=1, leased=-1,", "moves.add(fate.channel_id, leased=-1,")),
    Mutant("MariaDB: settling is not fenced", frozenset({"stale_accepted", "completed_unworked"}), [
        Patch(f"{_MYSQL}/queries/{name}.sql", f"l.message_id, {fence}l.fence",
              f"l.message_id, {fence}x.fence", 1)
        for name, fence in (("held", ""), ("held_fully", ""))
    ] + [
        Patch(f"{_MYSQL}/queries/{name}.sql", "on l.message_id = x.id and l.fence = x.fence", "on l.message_id = x.id")
        for name in ("held", "held_fully")], engine="mariadb"),
    _on_mariadb("MariaDB: a claim takes no slot", "over_limit sampled", f"{_MYSQL}/visits.py",
        ("leased = self.leased + (started if channel.concurrency is not None else 0)", "leased = self.leased")),
    _on_mariadb("MariaDB: every claim has a new burst", "rate_excess", f"{_MYSQL}/visits.py",
        ("self.tat = max(channel.tat or now, now)", "self.tat = now")),
    _on_mariadb("MariaDB: a pause is ignored", "paused_starts", f"{_MYSQL}/visits.py",
        ("if channel.paused or self.early:", "if self.early:")),
    _on_mariadb("MariaDB: a late commit is heard too late", "order", f"{_MYSQL}/looking.py",
        ("return self.start.wake - _LATE", "return self.start.wake")),
    Mutant("MariaDB: leases end before their time", frozenset({"expired_early"}), [
        Patch(f"{_MYSQL}/expiring.py", 'self._say("overdue", floor, found.now, limit)',
              'self._say("overdue", floor, found.now + 1_500_000, limit)'),
        Patch(f"{_MYSQL}/queries/overdue_held.sql", "l.until <= $2", "l.until <= $2 + 1500000")],
        engine="mariadb"),
]  # fmt: skip
