-- The results that are still kept, of messages that completed. No row for others.
-- p_now: as in write_time_v1, only the owner's counts: a slow clock would show what is no longer kept.
create or replace function "laneway".results_v1(p_ids bigint[], p_now timestamptz default null)
returns table (message_id bigint, content_type text, payload bytea)
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
    select r.message_id, r.content_type, r.payload from result r
    where r.message_id = any(p_ids) and r.payload is not null and r.expires_at > coalesce(
        case when pg_has_role(session_user, current_user, 'member') then p_now end, clock_timestamp())
$$;
