"""Defects of claims by kind."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from dataclasses import replace

from .mutant import Mutant, function, python, sql

_SQLITE, _MYSQL = "engines/sqlite/claim", "engines/mysql/claim"
# Cases of the conformance suite: chaos sees these only by luck.
_FULL = "kinds: a limit counts the messages of all kinds, and a full channel is blocked"
_COMES_BACK = "kinds: what comes back is found by its kind: deferred, expired, redriven, run now"

_BY_KIND: list[Mutant] = [
    sql("by kind: a claim takes no slot", "over_limit sampled", "claim_visit_kinds_v1",
        ("s.leased + case when s.concurrency is null and s.reached is null then 0 else s.taken end as leased", "s.leased as leased")),
    sql("by kind: every claim has a new burst", "rate_excess", "claim_visit_kinds_v1",
        ("greatest(coalesce(t.tat, p_now), p_now) as tat", "p_now as tat")),
    sql("by kind: a pause is ignored", "paused_starts", "claim_visit_kinds_v1",
        ("case when l.paused or l.early then 0", "case when l.early then 0")),
    sql("by kind: other kinds pass where one starts at a time", "order", "claim_visit_kinds_v1",
        ("coalesce(v.concurrency = 1, false) and p_lanes is not null as strict", "false as strict")),
    sql("by kind: a position is dropped while something is left", "stuck", "advanced_lanes_v1",
        ("b.seen > coalesce(t.n, 0)", "b.seen > coalesce(t.n, 0) + 1")),
    python("by kind: a freed slot is told to nobody", "conformance", function("free_slots_v1"),
        ("then '-' else '' end", "then '' else '' end"), case=_FULL),
    python("by kind: what comes back is told to nobody", "conformance", function("put_back_v1"),
        ("case when b.by_kind then '=' || b.kind when", "case when b.by_kind then '' when"), case=_COMES_BACK),
    sql("by kind: what is not due begins", "too_early", "startable_kind_v1",
        ("(k.due, k.id) > (p_due, p_mid) and k.due <= p_now", "(k.due, k.id) > (p_due, p_mid)")),
    python("SQLite by kind: other kinds pass where one starts at a time", "order", f"{_SQLITE}/channel.py",
        ("return self.concurrency == 1", "return False"), engine="sqlite"),
    python("SQLite by kind: a claim takes no slot", "over_limit sampled", f"{_SQLITE}/kinds.py",
        ("changes.add(visit.id, more=-count, leased=count)", "changes.add(visit.id, more=-count)"), engine="sqlite"),
    python("SQLite by kind: every claim has a new burst", "rate_excess", f"{_SQLITE}/channel.py",
        ("return self.id, self.tat, open_at, skips", "return self.id, None, None, skips"), engine="sqlite"),
    python("MariaDB by kind: other kinds pass where one starts at a time", "order", f"{_MYSQL}/lanes.py",
        ("return self.names is not None and self.channel.concurrency == 1", "return False"), engine="mariadb"),
    python("MariaDB by kind: a claim takes no slot", "over_limit sampled", f"{_MYSQL}/lanes.py",
        ("leased = self.leased + (started if self.counted else 0)", "leased = self.leased"), engine="mariadb"),
    python("MariaDB by kind: what comes back is put into no lane", "stuck", f"{_MYSQL}/serve.py",
        ("if due is not None and visit.by_kind:", "if False:"), engine="mariadb"),
    python("MariaDB by kind: a pause is ignored", "paused_starts", f"{_MYSQL}/channel.py",
        ("if channel.paused or self.early:", "if self.early:"), engine="mariadb"),
]  # fmt: skip
MUTANTS = [replace(mutant, by_kind=True) for mutant in _BY_KIND]
