-- Part of upkeep: delete the events of listeners that have ended; after an hour the listeners themselves,
-- and what a transaction that was open for longer still wrote for them.
create or replace function "laneway".cleanup_events_v1(p_limit integer, p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
    v_done bigint;
begin
    if not exists (select from listener l where l.until <= p_now) then
        return 0;
    end if;
    delete from mail m where m.ctid = any(array(
        select k.ctid from listener l cross join lateral (
            select e.ctid from mail e where e.listener_id = l.id limit p_limit) k
        where l.until <= p_now));
    get diagnostics v_done = row_count;
    if exists (select from listener l where l.until <= p_now - interval '1 hour') then
        delete from mail m where m.listener_id < (select min(l.id) from listener l);
        delete from listener l where l.until <= p_now - interval '1 hour';
    end if;
    return v_done;
end
$$;
