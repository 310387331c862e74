-- Part of upkeep: forget workers that vanished a day ago, and requests whose lease has ended.
create or replace function "laneway".cleanup_workers_v1(p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint;
begin
    if exists (select from worker w where w.seen_at < v_now - interval '1 day') then
        delete from worker w where w.seen_at < v_now - interval '1 day';
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    if exists (select from cancel_request) then
        delete from cancel_request r
        where not exists (select from lease l where l.message_id = r.message_id and l.fence = r.fence);
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    return v_done;
end
$$;
