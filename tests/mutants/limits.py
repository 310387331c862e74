"""Defects of limits that channels share."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, function, python, sql

# Cases of the conformance suite.
_NOT_PASSED = "shared limits: what waits for one limit is not passed by what names it among others"
_FOUND_LATE = "shared limits: a channel that is found late has its share from when on it was due"

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
        ("set waiting = true, used = v_now", "set waiting = false, used = v_now")),
    python("SQLite shared: a claim takes no slot", "shared_limits", "engines/sqlite/shared_limits.py",
        ('yield self._many("add_limit_lease", rows)', "yield from ()"), engine="sqlite"),
    python("MariaDB shared: a claim takes no slot", "shared_limits", "engines/mysql/shared_limits.py",
        ('yield from self._insert("add_limit_runs", rows)', "yield from ()"), engine="mariadb"),
    python("MariaDB shared: who comes later may pass who waits for some of the limits", "conformance", "engines/shared_limits.py",
        ("held += _passing(sets, others, states, at)", "_passing(sets, others, states, at)"), engine="mariadb", case=_NOT_PASSED),
    python("MariaDB shared: of sets that have had as much any is next", "conformance", "engines/mysql/shared_limits.py",
        ("int(due or 0), int(id or 0)", "0, 0"), engine="mariadb", case=_NOT_PASSED),
    python("shared: who is found late has missed what others had", "conformance", function("limit_pass_v1"),
        ("when p_due < c.times[1] then c.passes[1] else", "when false then c.passes[1] else"), case=_FOUND_LATE),
    sql("adapting: more run than its upper bound", "shared_limits", "control_limit_v1",
        ("then v_limit.set_concurrency else v_limit.adapted end;", "then v_limit.set_concurrency else v_limit.adapted + 2 end;")),
    sql("breaker: it never opens", "breakers", "control_limit_v1",
        ("v_limit.opened_at := v_at;", "v_failed := 0;")),
    sql("breaker: what it opened for starts again at once", "breakers", "control_limit_v1",
        ("v_limit.rest_until := greatest(v_limit.rest_until, v_limit.open_until);", "null;")),
    sql("breaker: two are let through at once", "breakers", "control_limit_v1",
        ("least(v_limit.concurrency, 1 + (", "least(v_limit.concurrency, 2 + (")),
    sql("breaker: one that was let through and fails closes it", "breakers", "control_limit_v1",
        ("elsif v_ended > 0 and v_failed = 0 then", "elsif v_ended > 0 then")),
    sql("breaker: nobody notes how messages end", "breakers", "note_limits_v1",
        ("and x.name = any(v_names);", "and false;")),
    python("breaker: workers note nothing", "breakers", "worker/settle.py",
        ("await self._run(self._core.engine.note_limits(notes), seconds)", "pass")),
    python("SQLite breaker: what it opened for starts again at once", "breakers", "limits.py",
        ("self.rest_until = max(self.rest_until or 0, self.open_until)", "pass"), engine="sqlite"),
    python("SQLite breaker: two are let through at once", "breakers", "limits.py",
        ("probes = 1 + sum(", "probes = 2 + sum("), engine="sqlite"),
    python("MariaDB breaker: nobody notes how messages end", "breakers", "engines/mysql/shared_limits.py",
        ('yield self._statement("note_limits", pairs, data(name), outcome, self._now())', "yield from ()"), engine="mariadb"),
]  # fmt: skip
