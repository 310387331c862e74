"""Defects of claims, of upkeep and of what operators do, on PostgreSQL."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, Patch, function, python, sql

_PLAIN = function("claim_serve_plain_v1")
_VISIT = function("claim_visit_v1")
# Chaos sees these only by luck.
_HIDES = (
    "tests/interleavings/test_found.py::"
    "test_a_cancelled_message_that_is_off_the_count_too_early_hides_no_other"
)
_SWITCHED = "fairness: by time: switched on and off while messages run"

MUTANTS: list[Mutant] = [
    sql("a claim takes no slot", "over_limit sampled", "claim_visit_v1",
        ("s.leased + case when s.concurrency is null and not s.paced then 0 else s.taken end as leased", "s.leased as leased")),
    sql("fair by time: leases are freed that were not counted", "over_limit sampled", "claim_visit_v1",
        ("s.leased + case when s.concurrency is null and not s.paced then 0", "s.leased + case when s.concurrency is null then 0")),
    python("fair by time: leases are counted and never freed", "conformance", _VISIT,
        ("h.concurrency is not null or h.paced as counted", "h.concurrency is not null as counted"), case=_SWITCHED),
    sql("the limit lets one more in", "over_limit sampled", "claim_visit_v1",
        ("l.n, l.concurrency - l.leased,", "l.n, l.concurrency + 1 - l.leased,"),
        ("s.concurrency - s.leased <= s.taken then null", "s.concurrency + 1 - s.leased <= s.taken then null")),
    sql("a new limit forgets who runs", "over_limit", "set_policy_v1",
        ("if cardinality(v_limited) > 0 then", "if false then")),
    sql("the rate refills twice as fast", "rate_excess", "claim_visit_v1",
        ("s.tat + ceil(s.taken / s.rate * 1e6 - 1e-3)", "s.tat + ceil(s.taken / s.rate / 2 * 1e6 - 1e-3)")),
    sql("every claim has a new burst", "rate_excess", "claim_visit_v1",
        ("greatest(coalesce(t.tat, p_now), p_now) as tat", "p_now as tat")),
    Mutant("the fence does not rise", frozenset({"fences", "history", "unexplained_duplicates"}), [
        Patch(_PLAIN, "v_fence bigint := nextval('fence');", "v_fence bigint := 1;"),
        Patch(_VISIT, "v_fence bigint := nextval('fence');", "v_fence bigint := 1;")]),
    python("every session has its own block of fences", "fences", "engines/postgresql/migrations/0001_queue/tables.sql",
        ('create sequence "laneway".fence;', 'create sequence "laneway".fence cache 1000;')),
    Mutant("a pause is ignored", frozenset({"paused_starts"}), [
        Patch(function("claim_own_v1"), "k.rate is null and not k.paused as plain", "k.rate is null as plain"),
        Patch(_VISIT, "case when l.paused or l.early then 0", "case when l.early then 0")]),
    sql("the youngest of a channel begins", "order", "claim_visit_v1",
        ("order by k.due, k.id limit r.quota +", "order by k.due desc, k.id desc limit r.quota +")),
    sql("a contended claim parts wakes instead of channels", "order", "claim_scan_v1",
        ("select k.ctid as tid, k.channel_id, k.at, k.n, k.freed, k.priority = 0",
         "select k.message_id, k.ctid as tid, k.channel_id, k.at, k.n, k.freed, k.priority = 0"),
        ("""where v_part is null or channel_part_v1(r.channel_id) = v_part
                order by r.at""", """where v_part is null or r.message_id % 16 = v_part
                order by r.at""")),
    sql("priorities are ignored", "priorities", "claim_pick_v1",
        ("order by m.young, m.priority desc, m.due, m.id)", "order by m.due, m.id)")),
    Mutant("what is not due begins", frozenset({"too_early"}), [
        Patch(function("startable_v1"), "(k.due, k.id) > (p_due, p_mid) and k.due <= p_now",
              "(k.due, k.id) > (p_due, p_mid)"),
        Patch(function("publish_v1"), "select greatest(i.due, v_now), i.channel_id, min(i.due)",
              "select v_now, i.channel_id, min(i.due)")]),
    python("claims go by the client's clock", "clock expired_early too_early expired_unexplained stuck",
        "engines/postgresql/base.py",
        ("now = self._clock() if self._clock else None",
         "import time; from datetime import UTC; now = datetime.fromtimestamp(time.time(), UTC)")),
    sql("leases end before their time", "expired_early", "expire_leases_v1",
        ("k.until <= v_now order by", "k.until <= v_now + interval '1500 ms' order by"),
        ("and l.until <= v_now", "and l.until <= v_now + interval '1500 ms'")),
    sql("a lease that ran out frees two slots", "over_limit sampled", "expire_leases_v1",
        ("perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now, v_took);",
         "perform free_slots_v1(v_freed || v_freed, v_freed_queues || v_freed_queues, "
         "v_freed_channels || v_freed_channels, v_now);")),
    sql("a lease that ran out frees no slot", "stuck", "expire_leases_v1",
        ("if v_freed is not null then", "if v_freed is not null and false then")),
    sql("leases never run out", "stuck", "upkeep_v1", ("from expire_leases_v1(p_limit,", "from expire_leases_v1(0,")),
    sql("a lease that ran out is not noted", "history", "expire_leases_v1",
        ("from outcome f where v_setting.history <> 'none'", "from outcome f where f.message_id % 5 <> 0")),
    sql("a message that kills is tried once more", "budget", "expire_leases_v1",
        ("m.spent + 1 >= m.max_attempts as dead", "m.spent >= m.max_attempts as dead"),
        faults="poison,kill"),
    sql("a redrive loses some", "lost", "redrive_v1",
        ("    back as (\n        insert into message", "    spared as (select g.* from gone g where g.id % 3 <> 0),\n"
         "    back as (\n        insert into message"),
        ("kind_queue s)) then true end, g.flow_id\n        from gone g", "kind_queue s)) then true end, g.flow_id\n        from spared g")),
    sql("a redrive gives no new budget", "budget", "redrive_v1",
        ("g.key_window, g.attempt, 0, coalesce", "g.key_window, g.attempt, g.max_attempts - 1, coalesce")),
    sql("cancel takes what somebody holds", "cancelled wrongly_lost lost history", "end_waiting_v1",
        (" and not exists (select from lease l where l.message_id = m.id offset 0)", "")),
    Mutant("a cancelled message hides another", frozenset({"test"}), [
        Patch(_PLAIN, "case when l.positioned and l.n = t.taken then exists (", "case when false then exists ("),
        Patch(_VISIT, "(r.fewer or r.positions > 0) and r.quota = r.n", "r.fewer and r.quota = r.n")], test=_HIDES),
]  # fmt: skip
