"""Defects of what operators do: pauses, run now, cancels of running work, bulk operations."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from functools import partial

from .mutant import Mutant, python, sql

_on_sqlite = partial(python, engine="sqlite")
_on_mariadb = partial(python, engine="mariadb")

MUTANTS: list[Mutant] = [
    sql("a pause of a queue is ignored", "paused_starts", "claim_v1",
        ("from unnest(v_queues) q(name) where q.name <> all(v_paused));", "from unnest(v_queues) q(name));")),
    sql("a pause of a kind is ignored", "paused_starts", "claim_v1",
        ("if v_end.headers is not null and p_put_back then", "if false then")),
    _on_sqlite("SQLite: a pause of a kind is ignored", "paused_starts", "engines/kind_pauses.py",
        ("if not taken.paused:", "if True:")),
    sql("a pause of a queue ends before its time", "paused_starts", "pause_queue_v1",
        ("values (p_queue, p_kind, v_now + p_length,", "values (p_queue, p_kind, v_now + p_length / 5,")),
    sql("a pause of a channel ends before its time", "paused_starts", "pause_v1",
        ("paused_until = case when p_paused then v_now + p_length end", "paused_until = case when p_paused then v_now + p_length / 5 end"),
        ("(values (v_now), (case when p_paused then v_now + p_length end))", "(values (v_now), (case when p_paused then v_now + p_length / 5 end))")),
    sql("run now only says so", "made_due stuck", "run_now_v1",
        ("update message m set due = v_now from later l", "update message m set due = m.due from later l")),
    sql("run now wakes nobody", "stuck", "run_now_v1",
        ("select v_now, l.channel_id, v_now, l.id, 1, l.priority, l.queue, l.channel, l.lane from later l",
         "select v_now, l.channel_id, v_now, l.id, 1, l.priority, l.queue, l.channel, l.lane from later l where false")),
    sql("an operation counts its last part only", "operations", "step_operation_v1",
        ("done = o.done + coalesce(v_done, 0)", "done = coalesce(v_done, 0)")),
    sql("an operation ends after its first part", "operations", "step_operation_v1",
        ("v_ended := v_looked < v_most and v_last = v_looked;", "v_ended := true;")),
    python("a request to cancel is ignored", "cancels_ignored stuck", "worker/execute/pool.py",
        ("if (job.id, job.fence) in wanted and not job.cancel_requested:", "if False:")),
    _on_sqlite("SQLite: a pause of a queue is ignored", "paused_starts", "engines/sqlite/claim/claim.sql",
        ("where p.queue = $1 and p.kind is null and (p.until is null or p.until > $4))",
         "where p.queue = $1 and p.kind is null and p.until > $4 and false)"),
        ("where q.value not in (select p.queue from paused p))", ")")),
    _on_sqlite("SQLite: run now wakes nobody", "stuck", "engines/sqlite/operate/control.py",
        ("changes.add(channel_id, priority=priority, due=state.now)", "pass")),
    _on_mariadb("MariaDB: a pause of a queue is ignored", "paused_starts", "engines/mysql/claim/scan.py",
        ("""            if closed:
                ring =""", """            if False:
                ring =""")),
    _on_mariadb("MariaDB: an operation counts its last part only", "operations", "engines/mysql/dead_letters.sql",
        (", done = done + $1,", ", done = $1,")),
]  # fmt: skip
