-- resume of a queue, or of one kind of it: ends its pause, and wakes sleeping workers. Answers whether it
-- was paused.
create or replace function "laneway".resume_queue_v1(p_queue text, p_kind text, p_now timestamptz default null)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_paused boolean;
begin
    with gone as (
        delete from pause p where p.queue = p_queue and p.kind is not distinct from p_kind returning p.until
    )
    select count(*) > 0 into v_paused from gone g where g.until is null or g.until > v_now;
    perform notify_workers_v1(array[p_queue], v_now);
    return v_paused;
end
$$;
