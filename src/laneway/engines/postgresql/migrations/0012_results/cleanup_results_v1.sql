-- Part of upkeep: delete results that are no longer kept, and what holders said whose leases are gone.
create or replace function "laneway".cleanup_results_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint := 0;
begin
    if exists (select from result r where r.expires_at <= v_now) then
        delete from result r where r.message_id = any(array(
            select k.message_id from result k where k.expires_at <= v_now
            order by k.expires_at limit p_limit for update skip locked));
        get diagnostics v_done = row_count;
    end if;
    -- Who still holds a lease has said something lately, or is looked up here.
    if exists (select from progress p where p.at < v_now - interval '1 minute') then
        delete from progress p where p.message_id = any(array(
            select k.message_id from (
                select o.message_id, o.fence from progress o where o.at < v_now - interval '1 minute'
                order by o.at limit p_limit) k
            where not exists (select from lease l where l.message_id = k.message_id and l.fence = k.fence offset 0)));
        get diagnostics v_count = row_count;
    end if;
    return v_done + v_count;
end
$$;
