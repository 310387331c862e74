-- replace: publish messages whose keys publish_v1 found in use. A message that waits gets the new content; behind
-- one that runs the new message waits until that has ended.
--
-- Keeps: a leased message is never touched, of the messages of a key at most one runs, and at most one waits behind it.
-- Locks channel rows in id order, as a claim does; then keys in order, as all do who end messages with keys; then
-- messages.
--
-- All arrays have one element a message, each key occurs once. p_debounce_for: null keeps the due time; else the due time moves to
-- now + p_delay, at most that long after the message was published. Answers a row a message, in order: 'replaced'
-- (id: of the message that waits), 'published' (id: of a new one, behind the running message), 'existing' (nothing was
-- changed: its message is of another channel or kind or of a flow, has ended within its key's window, or is being redriven), 'free' (the key
-- is not in use any more: publish again), 'full' or 'closed'.
create or replace function "laneway".replace_v1(
    p_payload bytea[], p_queue text[], p_channel text[], p_kind text[], p_content_type text[], p_headers text[],
    p_key text[], p_key_window interval[], p_priority smallint[], p_delay interval[], p_at timestamptz[],
    p_expires_in interval[], p_expires_at timestamptz[], p_max_attempts integer[], p_key_scope text[], p_debounce_for interval[],
    p_now timestamptz default null
) returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_ids bigint[];
    v_status text[];
    v_refused text[];
    v_queues text[];
    v_keys text[];
    v_moved text[];
begin
    perform check_messages_v1(
        p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window, p_priority, p_delay, p_at, p_expires_in,
        p_expires_at, p_max_attempts), check_lengths_v1('debounce_for', p_debounce_for);
    p_key := key_names_v1(p_key, p_key_scope, p_channel, p_kind);
    perform lock_channels_v1(array_agg(x.queue), array_agg(x.channel))
    from (select distinct u.queue, u.channel from unnest(p_queue, p_channel) u(queue, channel)) x;
    perform from unnest(p_queue, p_key) x(queue, key)
    join dedupe k on k.queue = x.queue and k.key = x.key
    order by k.queue, k.key for update of k;
    -- Read once all is locked: later than the time of every claim that owned these channels.
    v_now := write_time_v1(p_now);

    -- What ends at this moment still has its lease here: its end waits for the key, and finds what waits behind it.
    select array_agg(s.message_id order by s.ordinal), array_agg(s.status order by s.ordinal)
    into v_ids, v_status
    from (
        select x.ordinal, k.message_id,
            case
                when k.message_id is null or k.expires_at <= v_now then 'free'
                when k.expires_at is not null then 'existing'
                when m.flow_id is not null then 'existing'
                when coalesce(m.channel, d.channel) is distinct from x.channel
                    or coalesce(m.kind, d.kind) is distinct from x.kind then 'existing'
                when d.id is not null then 'dead'
                when l.message_id is not null then 'leased'
                when k.behind is not null then 'parked'
                else 'waiting' end as status
        from unnest(p_queue, p_channel, p_kind, p_key) with ordinality x(queue, channel, kind, key, ordinal)
        left join dedupe k on k.queue = x.queue and k.key = x.key
        left join message m on m.id = k.message_id
        left join dead d on d.id = k.message_id
        left join lease l on l.message_id = k.message_id
    ) s;

    if 'dead' = any(v_status) then
        select array_agg(f.queue), array_agg(f.key) into v_queues, v_keys
        from free_dead_keys_v1(
            array(select y.queue from unnest(v_status, p_queue) y(status, queue) where y.status = 'dead'),
            array(select y.key from unnest(v_status, p_key) y(status, key) where y.status = 'dead')) f;
        v_status := array(
            select case when x.status <> 'dead' then x.status
                when (x.queue, x.key) in (select f.queue, f.key from unnest(v_queues, v_keys) f(queue, key)) then 'free'
                else 'existing' end
            from unnest(v_status, p_queue, p_key) with ordinality x(status, queue, key, ordinal) order by x.ordinal);
    end if;

    -- Closing channels take nothing, full ones nothing more.
    if exists (select from channel c where c.backlog is not null or c.closing) then
        v_refused := refuse_v1(
            array(select case when x.status = 'leased' then null else 'x' end
                from unnest(v_status) with ordinality x(status, ordinal) order by x.ordinal),
            p_queue, p_channel);
        v_status := array(
            select case
                when x.refused in ('full', 'closed') then x.refused
                when x.status in ('waiting', 'parked') and exists (
                    select from channel c where c.id = channel_id_v1(x.queue, x.channel) and c.closing offset 0) then 'closed'
                else x.status end
            from unnest(v_status, v_refused, p_queue, p_channel) with ordinality x(status, refused, queue, channel, ordinal)
            order by x.ordinal);
    end if;

    with item as materialized (
        select x.*, m.due as old_due, m.priority as old_priority, m.published_at, m.channel_id, m.by_kind, k.behind_due,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from unnest(v_ids, v_status, p_payload, p_queue, p_channel, p_content_type, p_headers, p_key, p_key_window,
            p_priority, p_delay, p_expires_in, p_expires_at, p_max_attempts, p_debounce_for)
            x(id, status, payload, queue, channel, content_type, headers, key, key_window,
            priority, delay, expires_in, expires_at, max_attempts, debounce_for)
        join message m on m.id = x.id
        join dedupe k on k.queue = x.queue and k.key = x.key
        where x.status in ('waiting', 'parked')
    ),
    next as materialized (
        select i.*, case
            when i.debounce_for is null or v_now >= i.published_at + i.debounce_for then coalesce(i.behind_due, i.old_due)
            else least(v_now + i.delay, i.published_at + i.debounce_for) end as due
        from item i
    ),
    changed as (
        update message m set
            payload = n.payload, content_type = n.content_type, headers = n.headers::jsonb, key_window = n.key_window,
            priority = n.priority, max_attempts = n.max_attempts, expires_at = coalesce(n.expires_at, v_now + n.expires_in),
            spent = 0, state = null, state_type = null,
            due = case when n.status = 'parked' then m.due else n.due end
        from next n where m.id = n.id
    ),
    later as (
        update dedupe k set behind_due = n.due from next n
        where n.status = 'parked' and k.queue = n.queue and k.key = n.key
    ),
    moved as materialized (
        select n.*, case when n.status = 'parked' then n.old_due else n.due end as new_due from next n
        where n.priority <> n.old_priority or n.status = 'waiting' and n.due <> n.old_due
    ),
    -- With another time it does not wait for shared limits any more: it asks again then.
    asks as (
        delete from limit_wait w using next n where w.message_id = n.id and n.status = 'waiting' and n.due <> n.old_due
    ),
    -- A wake of a message that waits behind another, or for shared limits, is its own, at its own time.
    unwoken as (
        delete from wake w using moved n
        where (n.status = 'parked' or exists (select from limit_wait k where k.message_id = n.id offset 0)) and w.queue = n.queue and w.at = n.old_due and w.message_id = n.id and w.n = 1
        returning w.message_id
    ),
    -- One fewer where it was, from just after the moment at which its own wake counts it, and one more where it is.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select case when n.old_due > v_now then n.old_due + interval '1 microsecond' else v_now end,
            n.channel_id, n.old_due, n.id, -1, n.old_priority, n.queue, n.channel, n.lane
        from moved n where not exists (select from unwoken u where u.message_id = n.id)
        union all
        select greatest(n.new_due, v_now), n.channel_id, n.new_due, n.id, 1, n.priority, n.queue, n.channel, n.lane
        from moved n
        union all
        -- One at a time: the next may be of another kind now.
        select v_now, n.channel_id, v_now, 0, 0, 0, n.queue, n.channel, '-'
        from (select distinct n.channel_id, n.queue, n.channel from moved n where n.by_kind) n
        where exists (select from channel c where c.id = n.channel_id and c.concurrency = 1 offset 0)
    )
    select array_agg(n.queue) into v_moved from moved n where n.new_due < v_now + interval '2 seconds';
    if v_moved is not null and exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(v_moved, v_now);
    end if;

    if 'leased' = any(v_status) then
        v_ids := park_v1(v_ids, v_status, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key,
            p_key_window, p_priority, p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts, v_now);
    end if;
    return query
    select case when x.status in ('full', 'closed', 'free') then null else x.id end,
        case x.status when 'waiting' then 'replaced' when 'parked' then 'replaced' when 'leased' then 'published' else x.status end
    from unnest(v_ids, v_status) with ordinality x(id, status, ordinal) order by x.ordinal;
end
$$;

-- Part of publishing to a topic with a key mode: who gets a copy. Producers may not read the table, and their clients
-- make such copies themselves.
create or replace function "laneway".subscribers_v1(p_topic text)
returns table (queue text, channel text, kind text)
language sql
stable
set search_path = "laneway", pg_temp
as $$
    select s.queue, s.channel, s.kind from subscription s where s.topic = p_topic order by s.queue
$$;
