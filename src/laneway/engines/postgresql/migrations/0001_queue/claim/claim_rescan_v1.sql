-- Part of claim: from where to scan again, because of those transactions of the caller's list (open when
-- its floors were taken) that have ended since. Null if none has.
--
-- Which ones have ended is asked of the snapshot of the calling statement. The planner puts the body in
-- place of the call.
create or replace function "laneway".claim_rescan_v1(
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[]
) returns table (turn timestamptz, wake timestamptz)
language sql stable
as $$
    select min(o.turn), min(o.wake)
    from unnest(p_open_xids, p_open_turns, p_open_wakes) o(xid, turn, wake)
    where pg_visible_in_snapshot(o.xid::text::xid8, pg_current_snapshot())
$$;
