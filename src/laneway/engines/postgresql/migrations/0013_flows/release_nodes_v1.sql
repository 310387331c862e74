-- Part of everything that decides the last parent of nodes: publish them. No limit of a channel refuses them: the
-- transaction that ends their parents must not fail for it.
create or replace function "laneway".release_nodes_v1(p_ids bigint[], p_now timestamptz)
returns void
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
    v_ids bigint[];
    v_queues text[];
    v_kinds text[];
begin
    with gone as (
        delete from flow_held h where h.id = any(p_ids) returning h.*
    ),
    inserted as (
        insert into message (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
            queue, channel, kind, content_type, headers, payload, by_kind, flow_id)
        select g.id, channel_id_v1(g.queue, g.channel), coalesce(g.at, p_now + g.delay, p_now), p_now, p_now,
            coalesce(g.expires_at, p_now + g.expires_in), g.max_attempts, g.priority, g.queue, g.channel, g.kind,
            g.content_type, g.headers, g.payload,
            case when g.queue = any(array(select s.queue from kind_queue s)) then true end, g.flow_id
        from gone g order by g.id
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel, message.kind,
            case when message.by_kind then '=' || message.kind else '' end as lane
    ),
    woken as (
        -- The position need not be a message's, but none may lie before it: an `at` can be long past.
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(i.due, p_now), i.channel_id, min(i.due), min(i.id), count(*), i.priority, i.queue, i.channel, i.lane
        from inserted i
        group by greatest(i.due, p_now), i.channel_id, i.priority, i.queue, i.channel, i.lane
    )
    select array_agg(i.id), array_agg(distinct i.queue) filter (where i.due < p_now + interval '2 seconds'), array_agg(distinct i.kind)
    into v_ids, v_queues, v_kinds
    from inserted i;
    perform announce_nodes_v1(v_ids, v_queues, v_kinds, p_now);
end
$$;

-- Part of publishing nodes: tell listeners and sleeping workers. Null: there are none.
create or replace function "laneway".announce_nodes_v1(p_ids bigint[], p_queues text[], p_kinds text[], p_now timestamptz)
returns void
language plpgsql
as $$
begin
    if p_ids is not null and exists (select from listener l where l.until > p_now) then
        perform add_events_v1(array['published'], p_ids, p_now);
    end if;
    if p_queues is not null and exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(p_queues, p_now, p_kinds);
    end if;
end
$$;
