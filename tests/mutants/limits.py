"""Defects of limits that channels share."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, python, sql

MUTANTS: list[Mutant] = [
    sql("shared: a claim starts one too many", "shared_limits", "admit_v1",
        ("end < v_concurrency[v_one], true)", "end <= v_concurrency[v_one], true)")),
    sql("shared: what waited starts one too many", "shared_limits", "limit_room_v1",
        ("case when l.concurrency is not null then l.concurrency", "case when l.concurrency is not null then l.concurrency + 1")),
    sql("shared: what waited takes no slot", "shared_limits", "start_limited_v1",
        ("select l.name, x.id, v_fence, l.round from", "select l.name, x.id, v_fence + 1, l.round from")),
    sql("shared: what waited is not charged to the rate", "shared_limits", "start_limited_v1",
        ("where l.name = any(string_to_array(v_limits, ',')) and l.rate is not null", "where false")),
    sql("shared: a lane is forgotten while something waits", "stuck", "pick_limited_v1",
        ("waiting = exists (", "waiting = false and exists (")),
    sql("shared: what is set aside is told to nobody", "stuck", "sweep_limited_v1",
        ("limit_pass_v1(v_limits), true", "limit_pass_v1(v_limits), false"),
        ("do update set waiting = true,", "do update set waiting = limit_lane.waiting,")),
    python("SQLite shared: a claim takes no slot", "shared_limits", "engines/sqlite/shared_limits.py",
        ('yield self._many("add_limit_lease", rows)', "yield from ()"), engine="sqlite"),
    python("MariaDB shared: a claim takes no slot", "shared_limits", "engines/mysql/shared_limits.py",
        ('yield from self._insert("add_limit_runs", rows)', "yield from ()"), engine="mariadb"),
]  # fmt: skip
