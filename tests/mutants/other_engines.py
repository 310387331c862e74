"""Defects of the engines on SQLite and MariaDB, where the code is another."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, Patch, python

_SQLITE, _MYSQL, _FAIRNESS = "engines/sqlite", "engines/mysql", "engines/fairness.py"
_on_sqlite = partial(python, engine="sqlite")
_on_mariadb = partial(python, engine="mariadb")
_UNFENCED = [
    Patch(f"{_SQLITE}/settle/end.sql", "where fence = $1 and message_id in",
          "where $1 is not null and message_id in", times=2),
    Patch(f"{_SQLITE}/settle/end.sql", "select message_id, fence,", "select message_id, $1,"),
]  # fmt: skip

MUTANTS: list[Mutant] = [
    Mutant("SQLite: settling is not fenced", frozenset({"stale_accepted"}), _UNFENCED,
        engine="sqlite"),
    _on_sqlite("SQLite: a claim takes no slot", "over_limit sampled", f"{_SQLITE}/claim/channel.py",
        ("leased = self.leased + len(self.taken)", "leased = self.leased")),
    _on_sqlite("SQLite: the rate refills twice as fast", "rate_excess", _FAIRNESS,
        ("ceil(started / self.rate * _SECOND - 1e-3)", "ceil(started / self.rate / 2 * _SECOND - 1e-3)")),
    _on_sqlite("SQLite: priorities are ignored", "priorities", _FAIRNESS,
        ("key=lambda one: (-priority(one), position(one))", "key=position")),
    _on_sqlite("SQLite: an extension shortens", "expired_early", f"{_SQLITE}/settle/settle.sql",
        ("max(until, $3)", "$3")),
    _on_sqlite("SQLite: one failed try too many", "budget", f"{_SQLITE}/settle/settle.py",
        ("failed and lease.spent + 1 >= lease.max_attempts", "failed and lease.spent >= lease.max_attempts")),
    _on_sqlite("SQLite: what is put back is not counted", "stuck", f"{_SQLITE}/settle/end.py",
        ("changes.add(lease.channel_id, more=1, leased=-1,", "changes.add(lease.channel_id, leased=-1,")),
    Mutant("MariaDB: settling is not fenced", frozenset({"stale_accepted", "completed_unworked"}), [
        Patch(f"{_MYSQL}/settle/settle.sql", "l.message_id, l.fence", "l.message_id, x.fence", 2),
        Patch(f"{_MYSQL}/settle/settle.sql", "on l.message_id = x.id and l.fence = x.fence",
              "on l.message_id = x.id", 2)], engine="mariadb"),
    _on_mariadb("MariaDB: a claim takes no slot", "over_limit sampled", f"{_MYSQL}/claim/channel.py",
        ("leased = self.leased + (started if self.counted else 0)", "leased = self.leased")),
    _on_mariadb("MariaDB: fair by time: leases are freed that were not counted", "over_limit sampled", f"{_MYSQL}/claim/channel.py",
        ("leased = self.leased + (started if self.counted else 0)", "leased = self.leased + (started if channel.concurrency is not None else 0)")),
    _on_mariadb("MariaDB: every claim has a new burst", "rate_excess", f"{_MYSQL}/claim/channel.py",
        ("self.rate, channel.tat, now", "self.rate, None, now"),
        ("self.rate.after(started, channel.tat, now)", "self.rate.after(started, None, now)")),
    _on_mariadb("MariaDB: a pause is ignored", "paused_starts", f"{_MYSQL}/claim/channel.py",
        ("if channel.paused or self.early:", "if self.early:")),
    _on_mariadb("MariaDB: a late commit is heard too late", "order", f"{_MYSQL}/claim/scan.py",
        ("return self.start.wake - _LATE", "return self.start.wake")),
    Mutant("MariaDB: leases end before their time", frozenset({"expired_early"}), [
        Patch(f"{_MYSQL}/upkeep.py", 'self._sql.statement("expired_leases", floor, settings.now, limit)',
              'self._sql.statement("expired_leases", floor, settings.now + 1_500_000, limit)'),
        Patch(f"{_MYSQL}/upkeep.sql", "l.until <= $2", "l.until <= $2 + 1500000")],
        engine="mariadb"),
]  # fmt: skip
