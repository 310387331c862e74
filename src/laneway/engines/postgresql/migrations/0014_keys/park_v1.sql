-- Part of replace_v1: new messages behind the running ones that have their keys. Answers the ids, new ones where the
-- status is 'leased'. The caller holds the keys.
--
-- Such a message is scheduled for a time that never comes and that no other message has, so that its wake is
-- found by it (start_behind_v1).
create or replace function "laneway".park_v1(
    p_ids bigint[], p_status text[], p_payload bytea[], p_queue text[], p_channel text[], p_kind text[],
    p_content_type text[], p_headers text[], p_key text[], p_key_window interval[], p_priority smallint[],
    p_delay interval[], p_at timestamptz[], p_expires_in interval[], p_expires_at timestamptz[],
    p_max_attempts integer[], p_now timestamptz
) returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_ids bigint[] := array(
        select case when x.status = 'leased' then nextval('message_id') else x.id end
        from unnest(p_ids, p_status) with ordinality x(id, status, ordinal) order by x.ordinal);
begin
    with inserted as (
        insert into message (
            id, channel_id, due, published_at, first_published_at, expires_at, key_window,
            max_attempts, priority, queue, channel, kind, key, content_type, headers, payload, by_kind)
        select x.id, channel_id_v1(x.queue, x.channel),
            timestamptz '5000-01-01 00:00:00+00' + (x.id % 1000000000000000) * interval '1 microsecond', p_now, p_now,
            coalesce(x.expires_at, p_now + x.expires_in), x.key_window, x.max_attempts, x.priority,
            x.queue, x.channel, x.kind, x.key, x.content_type, x.headers::jsonb, x.payload,
            case when x.queue = any(array(select s.queue from kind_queue s)) then true end
        from unnest(v_ids, p_status, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window,
            p_priority, p_expires_in, p_expires_at, p_max_attempts)
            x(id, status, payload, queue, channel, kind, content_type, headers, key, key_window,
            priority, expires_in, expires_at, max_attempts)
        where x.status = 'leased'
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel,
            case when message.by_kind then '=' || message.kind else '' end as lane
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select i.due, i.channel_id, i.due, i.id, 1, i.priority, i.queue, i.channel, i.lane from inserted i;

    update dedupe k set
        behind = coalesce(k.behind, k.message_id), message_id = x.id,
        behind_due = coalesce(x.at, p_now + x.delay, p_now)
    from unnest(v_ids, p_status, p_queue, p_key, p_delay, p_at) x(id, status, queue, key, delay, at)
    where x.status = 'leased' and k.queue = x.queue and k.key = x.key;

    if exists (select from listener l where l.until > p_now) then
        perform add_events_v1(array['published'], array(
            select x.id from unnest(v_ids, p_status) x(id, status) where x.status = 'leased'), p_now);
    end if;
    return v_ids;
end
$$;
