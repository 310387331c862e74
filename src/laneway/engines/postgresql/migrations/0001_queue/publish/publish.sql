-- publish: append messages, and one wake per channel, priority and time touched.
--
-- Keeps: it takes no lock that another publisher or a claim waits for, with one exception: a publish
-- with the key of another publish that has not committed yet waits for it to commit or roll back.
-- Keys of one batch are taken in sorted order.
--
-- The arrays have one element per message. An array of one element holds for the whole batch,
-- null or an empty one means the default. Answers one row a message, in order:
-- status 'published', 'existing' (the key is in use, id is its message's), 'full' or 'closed'.
-- p_key_scope: where a key holds: 'kind' (of this kind in this channel; the default), 'channel' or 'queue'.
create or replace function "laneway".publish_v1(
    p_payload bytea[],
    p_queue text[],
    p_channel text[],
    p_kind text[] default null,
    p_content_type text[] default null,
    p_headers text[] default null,
    p_key text[] default null,
    p_key_window interval[] default null,
    p_priority smallint[] default null,
    p_delay interval[] default null,
    p_at timestamptz[] default null,
    p_expires_in interval[] default null,
    p_expires_at timestamptz[] default null,
    p_max_attempts integer[] default null,
    p_key_scope text[] default null,
    p_now timestamptz default null
) returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
as $$
declare
    v_count integer := coalesce(cardinality(p_payload), 0);
    v_fits boolean;
    v_now timestamptz;
    v_ids bigint[];
    v_status text[];
    v_channel_id uuid := only_channel_id_v1(p_queue, p_channel);
    v_due timestamptz;
    v_lane text;
begin
    -- Most calls have one message with little that is seldom given. What fits here need not be asked again; all else is for
    -- check_messages_v1 to decide. Few parts, and two steps: an expression is set up anew in every transaction.
    v_fits := v_count = 1 and v_channel_id is not null and octet_length(p_payload[1]) <= 1048576
        and num_nonnulls(p_key, p_key_window, p_at, p_expires_in, p_expires_at) = 0
        and (greatest(cardinality(p_kind), cardinality(p_content_type), cardinality(p_priority), cardinality(p_max_attempts)) <= 1) is not false
        and least(octet_length(p_queue[1]), octet_length(p_channel[1])) >= 1
        and greatest(octet_length(p_queue[1]), octet_length(p_channel[1]), octet_length(p_kind[1])) <= 255
        and (p_content_type[1] in ('application/json', 'application/octet-stream', 'text/plain')) is not false
        and (p_priority[1] between 0 and 200) is not false and (p_max_attempts[1] >= 1) is not false;
    if v_fits and num_nonnulls(p_headers, p_delay) > 0 then
        v_fits := (greatest(cardinality(p_headers), cardinality(p_delay)) <= 1) is not false
            and is_headers_v1(p_headers[1]) is not false and is_length_v1(p_delay[1]) is not false;
    end if;
    if v_fits is not true then
        perform check_messages_v1(
            p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window, p_priority, p_delay, p_at,
            p_expires_in, p_expires_at, p_max_attempts);
    end if;
    v_now := write_time_v1(p_now);
    if v_count = 1 and v_channel_id is not null and p_key[1] is null
        and not exists (select from channel c where c.backlog is not null or c.closing) then
        -- One message that nobody can refuse: the same without arrays and groups, which cost more than the message.
        v_due := coalesce(p_at[1], v_now + p_delay[1], v_now);
        insert into message (
            channel_id, due, published_at, first_published_at, expires_at, key_window,
            max_attempts, priority, queue, channel, kind, content_type, headers, payload, by_kind)
        values (
            v_channel_id, v_due, v_now, v_now, coalesce(p_expires_at[1], v_now + p_expires_in[1]), p_key_window[1],
            coalesce(p_max_attempts[1], 20), coalesce(p_priority[1], 0), p_queue[1], p_channel[1], coalesce(p_kind[1], ''),
            coalesce(p_content_type[1], 'application/octet-stream'), p_headers[1]::jsonb, p_payload[1],
            case when p_queue[1] = any(array(select s.queue from kind_queue s)) then true end)
        returning message.id, case when message.by_kind then '=' || message.kind else '' end into id, v_lane;
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        values (greatest(v_due, v_now), v_channel_id, v_due, id, 1, coalesce(p_priority[1], 0), p_queue[1], p_channel[1], v_lane);
        if exists (select from listener l where l.until > v_now) then
            perform add_events_v1(array['published'], array[id], v_now);
        end if;
        if exists (select from sleeper s where s.until > v_now) and v_due < v_now + interval '2 seconds' then
            perform notify_workers_v1(p_queue, v_now, case when cardinality(p_kind) > 0 then p_kind else '{""}' end);
        end if;
        status := 'published';
        return next;
        return;
    end if;
    v_ids := array(select nextval('message_id') from generate_series(1, v_count));
    v_status := array_fill(null::text, array[v_count]);

    if array_length(array_remove(p_key, null), 1) > 0 then
        p_key := key_names_v1(p_key, p_key_scope, p_channel, p_kind);
        select r.ids, r.status into v_ids, v_status
        from reserve_keys_v1(v_ids, p_queue, p_key, v_now) r;
    end if;

    if exists (select from channel c where c.backlog is not null or c.closing) then
        v_status := refuse_v1(v_status, p_queue, p_channel);
        -- Release the keys of refused messages, also for others with that key in the batch.
        perform release_keys_v1(array_agg(x.id), array_agg(coalesce(x.queue, p_queue[1])), array_agg(x.key), '{}', v_now)
        from unnest(v_ids, v_status, p_queue, p_key) x(id, status, queue, key)
        where x.status in ('full', 'closed') and x.key is not null;
        v_status := array(
            select coalesce(r.status, x.status)
            from unnest(v_ids, v_status) with ordinality x(id, status, ordinal)
            left join unnest(v_ids, v_status) r(id, status) on r.id = x.id and r.status in ('full', 'closed')
            order by x.ordinal);
    end if;

    with inserted as (
        insert into message (
            id, channel_id, due, published_at, first_published_at, expires_at, key_window,
            max_attempts, priority, queue, channel, kind, key, content_type, headers, payload, by_kind)
        select
            x.id, coalesce(v_channel_id, channel_id_v1(x.queue, x.channel)),
            coalesce(x.at, v_now + coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end), v_now),
            v_now, v_now,
            coalesce(x.expires_at, v_now + coalesce(x.expires_in, case when cardinality(p_expires_in) = 1 then p_expires_in[1] end)),
            x.key_window, coalesce(x.max_attempts, p_max_attempts[1], 20), coalesce(x.priority, p_priority[1], 0)::smallint,
            x.queue, x.channel, coalesce(x.kind, p_kind[1], ''), x.key,
            coalesce(x.content_type, p_content_type[1], 'application/octet-stream'), x.headers::jsonb, x.payload,
            case when x.queue = any(array(select s.queue from kind_queue s)) then true end
        from (
            select x.*, coalesce(x.own_queue, p_queue[1]) as queue, coalesce(x.own_channel, p_channel[1]) as channel
            from unnest(
                v_ids, v_status, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window,
                p_priority, p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts
            ) x(
                id, status, payload, own_queue, own_channel, kind, content_type, headers, key, key_window,
                priority, delay, at, expires_in, expires_at, max_attempts)
        ) x
        where x.status is null and x.id is not null
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel,
            case when message.by_kind then '=' || message.kind else '' end as lane
    )
    -- The position need not be a message's: none of them lies before it.
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select greatest(i.due, v_now), i.channel_id, min(i.due), min(i.id), count(*), i.priority, i.queue, i.channel, i.lane
    from inserted i
    group by greatest(i.due, v_now), i.channel_id, i.priority, i.queue, i.channel, i.lane;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['published'], array(
            select x.id from unnest(v_ids, v_status) x(id, status) where x.status is null), v_now);
    end if;
    if exists (select from sleeper s where s.until > v_now) then
        -- Not for what is due later: a sleeping worker looks every second, and learns the due time then.
        perform notify_workers_v1(
            case when coalesce(cardinality(p_delay), 0) = 0 and coalesce(cardinality(p_at), 0) = 0 then p_queue else array(
                select distinct coalesce(x.queue, p_queue[1])
                from unnest(v_ids, v_status, p_queue, p_delay, p_at) x(id, status, queue, delay, at)
                where x.status is null and coalesce(
                    x.at, v_now + coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end), v_now
                ) < v_now + interval '2 seconds')
            end, v_now, case when cardinality(p_kind) > 0 then p_kind else '{""}' end);
    end if;

    return query
    select x.id, coalesce(x.status, 'published') from unnest(v_ids, v_status) x(id, status);
end
$$;

-- Part of publish: which messages of the batch their channels refuse.
--
-- The backlog is what is committed and unfinished in the channel, as this publisher sees it, plus
-- the batch itself. Publishers do not wait for each other, so transactions that are open at the
-- same time can exceed it by what they publish. Reads at most `backlog` index entries a channel,
-- and those of bulk publishes that have not committed.
create or replace function "laneway".refuse_v1(p_status text[], p_queue text[], p_channel text[])
returns text[]
language sql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
    with item as materialized (
        select
            x.ordinal, x.status,
            channel_id_v1(coalesce(x.queue, p_queue[1]), coalesce(x.channel, p_channel[1])) as channel_id
        from unnest(p_status, p_queue, p_channel) with ordinality x(status, queue, channel, ordinal)
    ),
    gate as materialized (
        select c.id, c.closing,
            c.backlog - (select count(*) from (
                select from message m where m.channel_id = c.id and (m.part is null or m.part not in (select p.id from staged_part p)) limit c.backlog) m) as room
        from channel c
        where (c.backlog is not null or c.closing) and c.id in (select i.channel_id from item i)
    ),
    queued as (
        select i.ordinal, i.status, g.closing, g.room, g.id,
            count(*) filter (where i.status is null)
                over (partition by i.channel_id order by i.ordinal) as place
        from item i left join gate g on g.id = i.channel_id
    )
    select array_agg(
        case
            when q.status is not null or q.id is null then q.status
            when q.closing then 'closed'
            when q.place > q.room then 'full' end
        order by q.ordinal)
    from queued q
$$;
