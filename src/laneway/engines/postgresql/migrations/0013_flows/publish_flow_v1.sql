-- publish a flow: all of its nodes, in the caller's transaction. Those without parents are messages at once, the others
-- wait in flow_held.
--
-- Keeps: a name is taken while its flow has not ended; waits only for an open publish of the same name. p_flow_id: go on
-- with a flow that this transaction has created.
-- p_parents, p_children, p_places: the edges. A child is the number of a node in this call, from 1; a parent is that as a
-- negative number, or the id of a node that was added before. So there can be no cycle.
-- The other arrays are those of publish_v1. Answers the flow and the ids of its nodes; status 'existing' (the flow of that
-- name, no ids), 'full' or 'closed' (a channel of a first node refuses; nothing was written).
create or replace function "laneway".publish_flow_v1(
    p_flow_id bigint, p_flow_queue text, p_name text, p_keep interval, p_when text[],
    p_parents bigint[], p_children integer[], p_places integer[],
    p_payload bytea[], p_queue text[], p_channel text[], p_kind text[], p_content_type text[], p_headers text[],
    p_priority smallint[], p_delay interval[], p_at timestamptz[], p_expires_in interval[], p_expires_at timestamptz[],
    p_max_attempts integer[], p_now timestamptz default null,
    out flow_id bigint, out ids bigint[], out status text
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_count integer := coalesce(cardinality(p_payload), 0);
    v_pending integer[];
    v_roots bigint[];
    v_queues text[];
    v_kinds text[];
begin
    if p_flow_id is not null and not exists (select from flow f where f.id = p_flow_id and f.xid = v_xid offset 0) then
        raise exception 'laneway: this transaction has not created the flow %', p_flow_id using errcode = '42501';
    end if;
    v_pending := array(
        select coalesce(e.n, 0)::integer from generate_series(1, v_count) o(number)
        left join (select c.number, count(*) as n from unnest(p_children) c(number) group by c.number) e on e.number = o.number
        order by o.number);

    if exists (select from channel c where c.backlog is not null or c.closing) then
        status := (
            select r.status
            from unnest(refuse_v1(
                array(select case when n.pending > 0 then 'held' end from unnest(v_pending) with ordinality n(pending, number) order by n.number),
                p_queue, p_channel)) r(status)
            where r.status <> 'held' limit 1);
        if status is not null then
            return;
        end if;
    end if;

    flow_id := p_flow_id;
    if flow_id is null then
        for v_try in 1 .. 20 loop
            -- One that has ended may not have been noted yet. Not locked before that is known: those who settle would wait.
            perform close_flow_v1(f.id, v_now) from flow_v1 f
            where f.queue = p_flow_queue and f.name = p_name and f.ended_at is null and f.held + f.live + f.dead = 0;
            insert into flow (id, xid, queue, name, created_at, keep)
            values (nextval('flow_id'), v_xid, p_flow_queue, p_name, v_now, p_keep)
            on conflict (queue, name) where ended_at is null do nothing
            returning id into flow_id;
            exit when found;
            -- A new statement: sees the one that was committed while the insert waited.
            select f.id into flow_id from flow f where f.queue = p_flow_queue and f.name = p_name and f.ended_at is null;
            if found then
                status := 'existing';
                return;
            end if;
        end loop;
        if flow_id is null then
            raise exception 'laneway: the name of a flow changed hands too often to be decided'
                using errcode = 'serialization_failure', hint = 'Publish again.';
        end if;
    end if;
    ids := array(select nextval('message_id') from generate_series(1, v_count));

    if exists (
        select from unnest(p_parents, p_children) e(parent, child)
        where e.child not between 1 and v_count or e.parent is null
            or e.parent <= 0 and -e.parent not between 1 and e.child - 1
            or e.parent > 0 and not exists (select from flow_node n where n.id = e.parent and n.flow_id = publish_flow_v1.flow_id)
    ) then
        raise exception 'laneway: a node of a flow can only come after nodes that were added before it' using errcode = '22023';
    end if;
    with item as materialized (
        select x.id, x.pending, x.payload, x.headers::jsonb as headers, x.at, x.expires_at,
            coalesce(x.run_when, p_when[1], 'completed') as run_when,
            coalesce(x.queue, p_queue[1]) as queue, coalesce(x.channel, p_channel[1]) as channel,
            coalesce(x.kind, p_kind[1], '') as kind,
            coalesce(x.content_type, p_content_type[1], 'application/octet-stream') as content_type,
            coalesce(x.priority, p_priority[1], 0)::smallint as priority,
            coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end) as delay,
            coalesce(x.expires_in, case when cardinality(p_expires_in) = 1 then p_expires_in[1] end) as expires_in,
            coalesce(x.max_attempts, p_max_attempts[1], 20) as max_attempts
        from unnest(
            publish_flow_v1.ids, v_pending, p_when, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_priority,
            p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts
        ) x(id, pending, run_when, payload, queue, channel, kind, content_type, headers, priority,
            delay, at, expires_in, expires_at, max_attempts)
    ),
    node as (
        insert into flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
        select i.id, publish_flow_v1.flow_id, i.pending, i.run_when, case when i.pending > 0 then 'held' else 'live' end, i.queue, i.channel, i.kind
        from item i
    ),
    edge as (
        insert into flow_edge (parent, child, strict, place)
        select case when e.parent < 0 then publish_flow_v1.ids[-e.parent] else e.parent end, publish_flow_v1.ids[e.child],
            coalesce(p_when[e.child], p_when[1], 'completed') = 'completed', e.place
        from unnest(p_parents, p_children, p_places) e(parent, child, place)
    ),
    held as (
        insert into flow_held (id, flow_id, delay, at, expires_in, expires_at, max_attempts, priority, queue, channel, kind,
            content_type, headers, payload)
        select i.id, publish_flow_v1.flow_id, i.delay, i.at, i.expires_in, i.expires_at, i.max_attempts, i.priority, i.queue, i.channel, i.kind,
            i.content_type, i.headers, i.payload
        from item i where i.pending > 0
    ),
    counted as (
        insert into flow_count (flow_id, held, live)
        select publish_flow_v1.flow_id, count(*) filter (where i.pending > 0), count(*) filter (where i.pending = 0) from item i
    ),
    inserted as (
        insert into message (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
            queue, channel, kind, content_type, headers, payload, by_kind, flow_id)
        select i.id, channel_id_v1(i.queue, i.channel), coalesce(i.at, v_now + i.delay, v_now), v_now, v_now,
            coalesce(i.expires_at, v_now + i.expires_in), i.max_attempts, i.priority, i.queue, i.channel, i.kind,
            i.content_type, i.headers, i.payload,
            case when i.queue = any(array(select s.queue from kind_queue s)) then true end, publish_flow_v1.flow_id
        from item i where i.pending = 0
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel, message.kind,
            case when message.by_kind then '=' || message.kind else '' end as lane
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(i.due, v_now), i.channel_id, min(i.due), min(i.id), count(*), i.priority, i.queue, i.channel, i.lane
        from inserted i
        group by greatest(i.due, v_now), i.channel_id, i.priority, i.queue, i.channel, i.lane
    )
    select array_agg(i.id), array_agg(distinct i.queue) filter (where i.due < v_now + interval '2 seconds'), array_agg(distinct i.kind)
    into v_roots, v_queues, v_kinds
    from inserted i;

    status := 'published';
    perform announce_nodes_v1(v_roots, v_queues, v_kinds, v_now);
end
$$;
