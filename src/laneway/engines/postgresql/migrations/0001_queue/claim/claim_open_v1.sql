-- Part of claim: the transactions that were open at the first scan, and for each the floors from which
-- to scan when it has ended: those that the caller had for it, else the caller's own, else the left edge.
--
-- p_snapshot lists only those that are older than the newest one that has ended; p_newer is how many
-- numbers were given out after that one. The planner puts the body in place of the call.
create or replace function "laneway".claim_open_v1(
    p_snapshot pg_snapshot, p_newer bigint, p_turn_floor timestamptz, p_wake_floor timestamptz,
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[]
) returns table (xids bigint[], turns timestamptz[], wakes timestamptz[])
language sql stable
as $$
    select array_agg(x.xid), array_agg(coalesce(o.turn, p_turn_floor, 'epoch')),
        array_agg(coalesce(o.wake, p_wake_floor, 'epoch'))
    from (
        select i.xid::text::bigint from pg_snapshot_xip(p_snapshot) i(xid)
        union all
        select pg_snapshot_xmax(p_snapshot)::text::bigint + g from generate_series(0, p_newer - 1) g
    ) x(xid)
    left join unnest(p_open_xids, p_open_turns, p_open_wakes) o(xid, turn, wake) on o.xid = x.xid
$$;
