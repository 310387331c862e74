-- Part of fail, defer and upkeep: move messages whose leases the caller has just ended to the dead
-- letters. The key stays in use, so that a redrive cannot create a second message with that key; if a message
-- waits behind it, that one has the key, and starts.
create or replace function "laneway".move_to_dead_v1(
    p_ids bigint[], p_reasons text[], p_error_types text[], p_errors text[], p_now timestamptz,
    p_tracebacks text[] default null
) returns void
language plpgsql
as $$
declare
    v_nodes bigint[];
    v_keyed bigint[];
    v_queues text[];
    v_keys text[];
begin
    with gone as (
        delete from message m where m.id = any(p_ids) returning m.*
    ),
    cause as materialized (
        select * from unnest(p_ids, p_reasons, p_error_types, p_errors, p_tracebacks) x(id, reason, error_type, error, traceback)
    ),
    counted as (
        insert into dead_count (queue, channel, n)
        select g.queue, g.channel, count(*) from gone g group by g.queue, g.channel
    ),
    buried as (
        insert into dead (id, died_at, published_at, first_published_at, expires_at, key_window, attempt, max_attempts,
            priority, queue, channel, kind, key, content_type, headers, state_type, state, reason, error_type, error, traceback, payload,
            flow_id)
        select g.id, p_now, g.published_at, g.first_published_at, g.expires_at, g.key_window, g.attempt + 1, g.max_attempts,
            g.priority, g.queue, g.channel, g.kind, g.key, g.content_type, g.headers, g.state_type, g.state,
            coalesce(c.reason, 'failed'), c.error_type, c.error, c.traceback, g.payload, g.flow_id
        from gone g join cause c on c.id = g.id
    )
    select array_agg(g.id) filter (where g.flow_id is not null), array_agg(g.id) filter (where g.key is not null),
        array_agg(g.queue) filter (where g.key is not null), array_agg(g.key) filter (where g.key is not null)
    into v_nodes, v_keyed, v_queues, v_keys from gone g;
    if v_keyed is not null then
        v_keyed := start_behind_v1(v_keyed, v_queues, v_keys, p_now);
        update dead d set key = null, key_window = null where v_keyed is not null and d.id = any(v_keyed);
    end if;
    if exists (select from listener l where l.until > p_now) then
        perform add_events_v1(array['dead'], p_ids, p_now);
    end if;
    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array['kept results'], p_now);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, null, 'dead', p_now);
    end if;
end
$$;
