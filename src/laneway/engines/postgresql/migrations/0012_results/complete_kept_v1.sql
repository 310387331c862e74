-- complete with results: as complete_v1, and keeps what the handlers returned, in the same transaction.
--
-- Keeps: a result is stored if and only if this call ended its message, under the fence it came with.
-- p_kept_*: the messages whose results are kept, with their fences, for how long, and the results: content type
-- and bytes, null for an outcome without one.
create or replace function "laneway".complete_kept_v1(
    p_ids bigint[], p_fences bigint[], p_kept_ids bigint[], p_kept_fences bigint[], p_keeps interval[],
    p_content_types text[], p_payloads bytea[],
    p_now timestamptz default null, p_waited jsonb default null, p_outcome text default 'completed'
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_ids bigint[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
    v_lost bigint[];
    v_lost_fences bigint[];
begin
    -- Read before they are deleted; none of these columns ever changes.
    select array_agg(m.id), array_agg(m.queue), array_agg(m.channel), array_agg(m.kind)
    into v_ids, v_queues, v_channels, v_kinds
    from message m where m.id = any(p_kept_ids);
    select array_agg(c.id), array_agg(c.fence) into v_lost, v_lost_fences
    from complete_v1(p_ids, p_fences, v_now, p_waited, p_outcome) c;

    insert into result (message_id, ended_at, expires_at, queue, channel, kind, outcome, content_type, payload)
    select distinct on (k.id) k.id, v_now, v_now + k.keep, m.queue, m.channel, m.kind, p_outcome, k.content_type, k.payload
    from unnest(p_kept_ids, p_kept_fences, p_keeps, p_content_types, p_payloads) k(id, fence, keep, content_type, payload)
    join unnest(v_ids, v_queues, v_channels, v_kinds) m(id, queue, channel, kind) on m.id = k.id
    where not exists (select from unnest(v_lost, v_lost_fences) l(id, fence) where l.id = k.id and l.fence = k.fence)
    on conflict (message_id) do nothing;

    if exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array['kept results'], v_now);
    end if;
    return query select x.id, x.fence, 'lost' from unnest(v_lost, v_lost_fences) x(id, fence);
end
$$;
