-- redrive: dead letters wait again, with a new budget of attempts. Their id, their attempt count and
-- the time of their first publish stay. Answers the ids that came back.
--
-- Keeps: a dead letter is redriven or discarded once. Locks dead letters in id order.
create or replace function "laneway".redrive_v1(
    p_ids bigint[], p_max_attempts integer default null, p_delay interval default null, p_now timestamptz default null
) returns table (id bigint)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_nodes bigint[];
begin
    perform check_numbers_v1('max_attempts', array[p_max_attempts], 1), check_lengths_v1('delay', array[p_delay]);
    v_now := write_time_v1(p_now);
    with chosen as materialized (
        select d.id from dead d where d.id = any(p_ids) order by d.id for update skip locked
    ),
    gone as (
        delete from dead d where d.id = any(array(select c.id from chosen c)) returning d.*
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, -count(*) from gone g group by g.queue, g.channel
    ),
    recorded as (
        insert into history (message_id, attempt, first_published_at, published_at, ended_at, payload_size,
            terminal, dead, priority, queue, channel, kind, outcome, reason, error_type)
        select g.id, g.attempt, g.first_published_at, g.published_at, v_now, octet_length(g.payload),
            false, false, g.priority, g.queue, g.channel, g.kind, 'redriven', g.reason, g.error_type
        from gone g, setting s where s.history <> 'none'
    ),
    back as (
        insert into message (id, channel_id, due, published_at, first_published_at, expires_at, key_window,
            attempt, spent, max_attempts, priority, queue, channel, kind, key, content_type, headers, state_type, state, payload,
            by_kind, flow_id)
        select g.id, channel_id_v1(g.queue, g.channel), v_now + coalesce(p_delay, interval '0'), v_now,
            g.first_published_at, null, g.key_window, g.attempt, 0, coalesce(p_max_attempts, g.max_attempts),
            g.priority, g.queue, g.channel, g.kind, g.key, g.content_type, g.headers, g.state_type, g.state, g.payload,
            case when g.queue = any(array(select s.queue from kind_queue s)) then true end, g.flow_id
        from gone g
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel,
            case when message.by_kind then '=' || message.kind else '' end as lane, message.flow_id
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(b.due, v_now), b.channel_id, b.due, min(b.id), count(*), b.priority, b.queue, b.channel, b.lane
        from back b group by b.channel_id, b.due, b.priority, b.queue, b.channel, b.lane
    )
    select array_agg(b.id order by b.id), array_agg(b.id) filter (where b.flow_id is not null) into p_ids, v_nodes from back b;
    if v_nodes is not null then
        perform revive_nodes_v1(v_nodes);
    end if;
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['redriven'], p_ids, v_now);
    end if;
    if exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array(
            select m.queue from message m where m.id = any(p_ids) and m.due < v_now + interval '2 seconds'), v_now);
    end if;
    return query select x.id from unnest(p_ids) x(id);
end
$$;

-- discard: delete dead letters for good. Answers the ids that were deleted.
-- Locks dead letters in id order.
create or replace function "laneway".discard_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_queues text[];
    v_channels text[];
    v_kinds text[];
    v_kept jsonb;
    v_nodes bigint[];
begin
    with chosen as materialized (
        select d.id from dead d where d.id = any(p_ids) order by d.id for update skip locked
    ),
    gone as (
        delete from dead d where d.id = any(array(select c.id from chosen c))
        returning d.id, d.queue, d.channel, d.kind, d.key, d.key_window, d.priority, d.attempt, d.reason, d.error_type, d.error,
            d.published_at, d.first_published_at, octet_length(d.payload) as payload_size, keep_result_v1(d.headers) as keep, d.flow_id
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, -count(*) from gone g group by g.queue, g.channel
    ),
    recorded as (
        insert into history (message_id, attempt, first_published_at, published_at, ended_at, payload_size,
            terminal, dead, priority, queue, channel, kind, outcome, reason, error_type)
        select g.id, g.attempt, g.first_published_at, g.published_at, v_now, g.payload_size,
            true, false, g.priority, g.queue, g.channel, g.kind, 'discarded', g.reason, g.error_type
        from gone g, setting s where s.history <> 'none'
    )
    select array_agg(g.id order by g.id),
        array_agg(g.id) filter (where g.key is not null), array_agg(g.queue) filter (where g.key is not null),
        array_agg(g.key) filter (where g.key is not null), array_agg(g.key_window) filter (where g.key is not null),
        array_agg(g.queue order by g.id), array_agg(g.channel order by g.id), array_agg(g.kind order by g.id),
        jsonb_agg(to_jsonb(g)) filter (where g.keep is not null), array_agg(g.id) filter (where g.flow_id is not null)
    into p_ids, v_keyed, v_key_queues, v_keys, v_windows, v_queues, v_channels, v_kinds, v_kept, v_nodes
    from gone g;
    perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, v_now);
    perform keep_ended_v1(array_agg(x.id), array_agg(x.queue), array_agg(x.channel), array_agg(x.kind), array_agg(x.keep),
        'discarded', array_agg(x.reason), array_agg(x.error_type), array_agg(x.error), v_now)
    from jsonb_to_recordset(v_kept) x(id bigint, queue text, channel text, kind text, keep interval, reason text, error_type text, error text);
    if p_ids is not null and exists (select from listener l where l.until > v_now) then
        perform deliver_events_v1(array_fill('discarded'::text, array[cardinality(p_ids)]), p_ids, v_queues, v_channels, v_kinds, v_now);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, null, 'discarded', v_now);
    end if;
    return query select x.id from unnest(p_ids) x(id);
end
$$;

-- untold_dead: dead letters that nobody was told of, the oldest first, for the caller to tell somebody.
--
-- Keeps: nobody else gets them for p_hold. Locks dead letters, skipping those that are locked. Writes nothing if there is none.
create or replace function "laneway".untold_dead_v1(
    p_queues text[], p_limit integer, p_hold interval, p_within interval, p_now timestamptz default null
) returns table (
    id bigint, queue text, channel text, kind text, key text, priority smallint, died_at timestamptz, published_at timestamptz,
    first_published_at timestamptz, attempt bigint, max_attempts integer, content_type text, headers jsonb, payload bytea,
    reason text, error_type text, error text, traceback text
)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
begin
    perform check_names_v1('queue', p_queues), check_numbers_v1('limit', array[p_limit], 0, 10000),
        check_lengths_v1('hold', array[p_hold]), check_lengths_v1('within', array[p_within]);
    return query
    with chosen as materialized (
        select d.id from dead d
        where d.queue = any(p_queues) and d.tell_at > v_now - p_within and d.tell_at <= v_now and d.died_at > v_now - p_within
        order by d.tell_at, d.id
        limit p_limit
        for update skip locked
    )
    update dead d set tell_at = v_now + p_hold
    from chosen c where d.id = c.id
    returning d.id, d.queue, d.channel, d.kind, substr(d.key, 17), d.priority, d.died_at, d.published_at, d.first_published_at,
        d.attempt, d.max_attempts, d.content_type, d.headers, d.payload, d.reason, d.error_type, d.error, d.traceback;
end
$$;

-- told_dead: somebody was told of them. One that was redriven and died again since is another letter.
create or replace function "laneway".told_dead_v1(p_ids bigint[], p_died_at timestamptz[]) returns void
language sql
set search_path = "laneway", pg_temp
as $$
    update dead d set tell_at = null
    from unnest(p_ids, p_died_at) x(id, died_at) where d.id = x.id and d.died_at = x.died_at
$$;
