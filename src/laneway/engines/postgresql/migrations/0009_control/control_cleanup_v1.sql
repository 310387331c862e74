-- Part of upkeep: delete old rows of the audit, and pauses that have ended, of queues, kinds and channels.
-- A pause that has ended holds nobody up; it is only removed from the list. Locks channels, skipping those
-- that others hold.
create or replace function "laneway".control_cleanup_v1(p_limit integer, p_now timestamptz)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_kept timestamptz;
    v_done bigint := 0;
    v_count bigint;
begin
    if exists (select from pause p where p.until <= v_now) then
        delete from pause p where p.until <= v_now;
        get diagnostics v_done = row_count;
    end if;
    if exists (select from channel c where c.paused_until <= v_now) then
        update channel c set paused = false, paused_until = null, throttled = false
        where c.id in (
            select k.id from channel k where k.paused_until <= v_now
            order by k.paused_until limit p_limit for no key update skip locked);
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    -- Ids follow the time, except for those of long transactions.
    v_kept := v_now - (select s.audit_days from setting s) * interval '1 day';
    if (select a.at < v_kept from audit a order by a.id limit 1) then
        delete from audit a where a.id in (
            select k.id from audit k where k.at < v_kept order by k.id limit p_limit);
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    return v_done;
end
$$;
