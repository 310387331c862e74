-- Part of claim: where the scan must go back to, for those of the caller's strays (transactions that were
-- running when its floors were taken) that have ended since. Null if none has.
create or replace function "penstock".surfaced_v1(
    p_strays bigint[], p_turns timestamptz[], p_wakes timestamptz[], out turn timestamptz, out wake timestamptz
)
language sql stable
set search_path = "penstock", pg_temp
as $$
    select min(s.turn), min(s.wake)
    from unnest(p_strays, p_turns, p_wakes) s(xid, turn, wake)
    where pg_visible_in_snapshot(s.xid::text::xid8, pg_current_snapshot())
$$;
