"""Defects of limits that channels share."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, Patch, function, python, sql

# Cases of the conformance suite: chaos cannot see these, or only by luck.
_EXACT = "shared limits: shares are exact: nobody is ahead of another by more than one start"
_BOUNDS = "adaptive limits: it stays within its bounds, whatever happens"
_OPENS = "breakers: one opens once enough of what ended in its window has failed"
_PROBE = "breakers: what ran when it opened is not a probe, and does not keep one from starting"
_RAN_OUT = "breakers: leases that ran out are failures, also of the one that was let through"
_NOT_PASSED = "shared limits: what waits for one limit is not passed by what names it among others"
_NO_IDLE_SLOTS = "shared limits: no claim comes back empty while slots are free and messages wait"
_FOUND_LATE = "shared limits: a channel that is found late has its share from when on it was due"
_SWEEP_ADDS = (
    "tests/interleavings/test_limits.py::"
    "test_what_a_sweep_adds_while_a_start_looks_at_lanes_is_started_too"
)
_COUNTS = (
    "tests/worker/test_throttled_limit.py::test_a_breaker_counts_what_handlers_return_and_raise"
)

MUTANTS: list[Mutant] = [
    sql("shared: a claim starts one too many", "shared_limits", "admit_v1",
        ("end < v_concurrency[v_one], true)", "end <= v_concurrency[v_one], true)")),
    sql("shared: what waited starts one too many", "shared_limits", "limit_room_v1",
        ("case when l.concurrency is not null then l.concurrency", "case when l.concurrency is not null then l.concurrency + 1")),
    sql("shared: what waited takes no slot", "shared_limits", "start_limited_v1",
        ("select l.name, x.id, v_fence, l.round from", "select l.name, x.id, v_fence + 1, l.round from")),
    sql("shared: what waited is not charged to the rate", "shared_limits", "start_limited_v1",
        ("where l.name = any(string_to_array(v_limits, ',')) and l.rate is not null", "where false")),
    python("shared: a lane is forgotten while something waits", "conformance", function("pick_limited_v1"),
        ("waiting = exists (", "waiting = false and exists ("),
        ("if cardinality(v_empty) > 0 then", "if false then"), case=_EXACT),
    Mutant("shared: a lane is forgotten while a sweep adds to it", frozenset({"test"}), [
        Patch(function("pick_limited_v1"), "if cardinality(v_empty) > 0 then", "if false then")], test=_SWEEP_ADDS),
    python("shared: what is set aside is told to nobody", "conformance", function("sweep_limited_v1"),
        ("s.priority, s.due from swept s", "s.priority, s.due from swept s where false"), case=_EXACT),
    python("SQLite shared: a claim takes no slot", "shared_limits", "engines/sqlite/shared_limits.py",
        ('yield self._sql.many("add_limit_lease", rows)', "yield from ()"), engine="sqlite"),
    python("MariaDB shared: a claim takes no slot", "shared_limits", "engines/mysql/shared_limits.py",
        ('yield from self._sql.insert("add_limit_runs", rows)', "yield from ()"), engine="mariadb"),
    python("MariaDB shared: who comes later may pass who waits for some of the limits", "conformance", "engines/shared_limits.py",
        ("held += _passing(sets, others, states, at)", "_passing(sets, others, states, at)"), engine="mariadb", case=_NOT_PASSED),
    python("MariaDB shared: of sets that have had as much any is next", "conformance", "engines/mysql/shared_limits.py",
        ("int(due or 0), int(id or 0)", "0, 0"), engine="mariadb", case=_NOT_PASSED),
    python("MariaDB shared: what may start waits for its channel's turn", "conformance", "engines/shared_limits.py",
        ("taken = yield from take(due)", "taken = _NOTHING"), engine="mariadb", case=_NO_IDLE_SLOTS),
    python("SQLite shared: what may start waits for its channel's turn", "conformance", "engines/shared_limits.py",
        ("taken = yield from take(due)", "taken = _NOTHING"), engine="sqlite", case=_NO_IDLE_SLOTS),
    python("shared: who is found late has missed what others had", "conformance", function("limit_pass_v1"),
        ("coalesce(least(1, date_part(", "coalesce(greatest(1, date_part("), case=_FOUND_LATE),
    python("adapting: more run than its upper bound", "conformance", function("control_limit_v1"),
        ("then v_limit.set_concurrency else v_limit.adapted end;", "then v_limit.set_concurrency else v_limit.adapted + 2 end;"), case=_BOUNDS),
    python("breaker: it never opens", "conformance", function("control_limit_v1"),
        ("v_limit.opened_at := v_at;", "v_failed := 0;"), case=_OPENS),
    python("breaker: what it opened for starts again at once", "conformance", function("control_limit_v1"),
        ("v_limit.rest_until := greatest(v_limit.rest_until, v_limit.open_until);", "null;"), case=_OPENS),
    python("breaker: two are let through at once", "conformance", function("control_limit_v1"),
        ("least(v_limit.concurrency, 1 + (", "least(v_limit.concurrency, 2 + ("), case=_PROBE),
    python("breaker: one that was let through and fails closes it", "conformance", function("control_limit_v1"),
        ("elsif v_ended > 0 and v_failed = 0 then", "elsif v_ended > 0 then"), case=_RAN_OUT),
    python("breaker: nobody notes how messages end", "conformance", function("note_limits_v1"),
        ("and x.name = any(v_names);", "and false;"), case=_OPENS),
    Mutant("breaker: workers note nothing", frozenset({"test"}), [
        Patch("worker/settle.py", "await self._run(self._database.engine.limits.note_limits(notes), seconds)", "pass")], test=_COUNTS),
    python("SQLite breaker: what it opened for starts again at once", "conformance", "limits.py",
        ("self.rest_until = max(self.rest_until or 0, self.open_until)", "pass"), engine="sqlite", case=_OPENS),
    python("SQLite breaker: two are let through at once", "conformance", "limits.py",
        ("probes = 1 + sum(", "probes = 2 + sum("), engine="sqlite", case=_PROBE),
    python("MariaDB breaker: nobody notes how messages end", "conformance", "engines/mysql/shared_limits.py",
        ('yield self._sql.statement("note_limits", pairs, data(name), outcome, self._sql.now())', "yield from ()"), engine="mariadb", case=_OPENS),
]  # fmt: skip
