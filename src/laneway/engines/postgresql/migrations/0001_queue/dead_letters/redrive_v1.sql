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
