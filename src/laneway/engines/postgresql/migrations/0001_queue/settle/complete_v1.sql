-- complete: the work is done, the message ends. Also with the outcome 'cancelled': its holder was told to stop.
--
-- p_waited: milliseconds that messages waited inside a worker before their handlers began, by id as JSON,
-- only those that did.
-- Keeps: only the holder of the lease with this fence ends the message. Locks leases in id order.
-- Answers only the lost ones, and records them: no row means that all were completed, the common and
-- cheap case.
create or replace function "laneway".complete_v1(
    p_ids bigint[], p_fences bigint[], p_now timestamptz default null, p_waited jsonb default null,
    p_outcome text default 'completed'
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_history text := (select s.history from setting s);
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_ids bigint[];
    v_fences bigint[];
    v_keyed bigint[];
    v_key_queues text[];
    v_keys text[];
    v_windows interval[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
    v_nodes bigint[];
begin
    -- Events are added before the messages are deleted: what is locked here is what ends below.
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array[p_outcome], array(
            select l.message_id from lease l
            where l.message_id = any(p_ids)
                and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
            order by l.message_id for update), v_now);
    end if;
    with ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    gone as (
        delete from message m where m.id = any(array(select e.message_id from ended e))
        returning m.id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size, m.flow_id
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, started_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select v_xid, g.id, e.fence, g.attempt + 1, g.first_published_at, g.published_at, g.due, e.claimed_at,
            case when p_waited ? g.id::text then
                least(e.claimed_at + (p_waited ->> g.id::text)::integer * interval '1 millisecond', v_now) end,
            v_now, g.payload_size, true, false, g.priority, g.queue, g.channel, g.kind, e.worker, p_outcome
        from gone g join ended e on e.message_id = g.id where v_history = 'all'
    )
    select e.ids, e.fences, k.ids, k.queues, k.keys, k.windows, f.ids, f.queues, f.channels, n.ids
    into v_ids, v_fences, v_keyed, v_key_queues, v_keys, v_windows, v_freed, v_freed_queues, v_freed_channels, v_nodes
    from (select array_agg(e.message_id) as ids, array_agg(e.fence) as fences from ended e) e
    cross join (
        select array_agg(g.id) as ids, array_agg(g.queue) as queues, array_agg(g.key) as keys, array_agg(g.key_window) as windows
        from gone g where g.key is not null
    ) k
    cross join (
        select array_agg(e.channel_id) as ids, array_agg(g.queue) as queues, array_agg(g.channel) as channels
        from ended e join gone g on g.id = e.message_id where e.counted
    ) f
    cross join (select array_agg(g.id) as ids from gone g where g.flow_id is not null) n;

    if v_keys is not null then
        perform release_keys_v1(v_keyed, v_key_queues, v_keys, v_windows, v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;
    if v_nodes is not null then
        perform end_nodes_v1(v_nodes, array(
            select x.fence from unnest(v_nodes) with ordinality n(id, number) join unnest(v_ids, v_fences) x(id, fence) on x.id = n.id
            order by n.number), p_outcome, v_now);
    end if;
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, case p_outcome when 'completed' then 'complete' else 'cancel' end, v_now);
    end if;
end
$$;
