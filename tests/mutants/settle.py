"""Defects of the verbs of a lease holder, on PostgreSQL."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501, S608

from .mutant import Mutant, Patch, function, sql

_FENCED = (
    "\n            and ((l.message_id, l.fence) in (select x.id, x.fence from "
    "unnest(p_ids, p_fences) x(id, fence))) is true\n        returning"
)
_UNFENCED = "\n        returning"
_JOIN = (
    "join item i on i.id = e.message_id and i.fence = e.fence",
    "join item i on i.id = e.message_id",
)
_ASKED = "(select x.fence from unnest(p_ids, p_fences) x(id, fence) where x.id = k.id limit 1)"

MUTANTS: list[Mutant] = [
    sql("complete is not fenced", "stale_accepted completed_unworked", "complete_v1",
        (_FENCED, _UNFENCED)),
    sql("defer is not fenced", "stale_accepted", "defer_v1", (_FENCED, _UNFENCED), _JOIN,
        ("return query select * from unnest(v_ids, v_fences, v_status);",
         f"return query select k.id, {_ASKED}, k.status from unnest(v_ids, v_status) k(id, status);")),
    sql("fail is not fenced", "stale_accepted", "fail_v1", (_FENCED, _UNFENCED), _JOIN,
        ("return query select x.id, x.fence, 'failed' from unnest(v_ids, v_fences) x(id, fence);",
         f"return query select k.id, {_ASKED}, 'failed' from unnest(v_ids) k(id);")),
    sql("give back is not fenced", "stale_accepted", "give_back_v1", (_FENCED, _UNFENCED), _JOIN,
        ("return query select x.id, x.fence, 'given_back' from unnest(v_ids, v_fences) x(id, fence);",
         f"return query select k.id, {_ASKED}, 'given_back' from unnest(v_ids) k(id);")),
    sql("extend is not fenced", "stale_accepted", "extend_v1", (_FENCED, _UNFENCED),
        ("return query select x.id, x.fence, 'extended', x.until from "
         "unnest(v_ids, v_fences, v_until) x(id, fence, until);",
         f"return query select k.id, {_ASKED}, 'extended', k.until "
         "from unnest(v_ids, v_until) k(id, until);")),
    sql("an extension shortens", "expired_early", "extend_v1",
        ("greatest(l.until, v_now", "greatest('-infinity'::timestamptz, v_now")),
    sql("writes are dated by the transaction's start", "clock", "write_time_v1",
        ("clock_timestamp()", "now()")),
    sql("some completions leave no history", "lost history", "complete_v1",
        ("on e.message_id = g.id where v_history = 'all'",
         "on e.message_id = g.id where v_history = 'all' and g.id % 7 <> 0")),
    sql("some attempts leave no history", "history", "defer_v1",
        ("from outcome f where v_history = 'all' or", "from outcome f where f.message_id % 5 <> 0 and v_history = 'all' or")),
    sql("attempts are not counted", "fences", "put_back_v1",
        ("attempt = case when x.counts then m.attempt + 1 else m.attempt end", "attempt = m.attempt")),
    sql("giving back counts an attempt", "fences", "give_back_v1",
        ("    woken as (",
         "    counted as (update message m set attempt = m.attempt + 1 from outcome f where m.id = f.message_id),\n"
         "    woken as (")),
    sql("one failed try too many", "budget", "defer_v1",
        ("i.failed and m.spent + 1 >= m.max_attempts", "i.failed and m.spent >= m.max_attempts")),
    sql("a deferral loses the saved state", "states", "put_back_v1",
        ("state = case when x.keep then m.state else x.state end", "state = m.state"),
        ("state_type = case when x.keep then m.state_type else x.state_type end", "state_type = m.state_type")),
    sql("a deferral ignores its delay", "too_early", "defer_v1",
        ("coalesce(x.at, v_now + coalesce(x.delay, interval '0'))", "coalesce(x.at, v_now)")),
    sql("some deferrals wake nobody", "stuck", "put_back_v1", ("from back b;", "from back b where b.id % 5 <> 0;")),
    sql("a completion frees no slot", "stuck", "complete_v1",
        ("if v_freed is not null then", "if v_freed is not null and false then")),
    sql("a completion frees two slots", "over_limit sampled", "free_slots_v1",
        ("::bigint, 0, count(*), 0", "::bigint, 0, 2 * count(*), 0")),
    sql("a completion keeps its key", "keys", "complete_v1",
        ("if v_keys is not null then", "if v_keys is not null and false then")),
    sql("a dead letter stays among the living", "two_states sampled", "move_to_dead_v1",
        ("delete from message m where m.id = any(p_ids) returning m.*",
         "select m.* from message m where m.id = any(p_ids)")),
    Mutant("who came too late is not told", frozenset({"stale_accepted"}), [
        Patch(function("complete_v1"), "< cardinality(p_ids) then", "< 0 then")]),
]  # fmt: skip
