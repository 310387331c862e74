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
    v_channel_id uuid := only_channel_id_v1(p_queue, p_channel);
    v_pending integer[];
    v_roots bigint[];
    v_queues text[];
    v_kinds text[];
begin
    perform check_names_v1('flow', array[p_name]), check_names_v1('queue of the flow', array[p_flow_queue]),
        check_lengths_v1('time to keep the flow', array[p_keep]), check_messages_v1(
        p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, null, null, p_priority, p_delay, p_at, p_expires_in,
        p_expires_at, p_max_attempts);
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
            or e.parent > 0 and not exists (select from flow_node n where n.id = e.parent and n.flow_id = publish_flow_v1.flow_id offset 0)
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
            coalesce(x.max_attempts, p_max_attempts[1], 20) as max_attempts,
            coalesce(v_channel_id, channel_id_v1(coalesce(x.queue, p_queue[1]), coalesce(x.channel, p_channel[1]))) as channel_id
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
        insert into flow_held (id, flow_id, delay, at, expires_in, expires_at, max_attempts, priority, channel_id, queue, channel, kind,
            content_type, headers, payload)
        select i.id, publish_flow_v1.flow_id, i.delay, i.at, i.expires_in, i.expires_at, i.max_attempts, i.priority,
            i.channel_id, i.queue, i.channel, i.kind, i.content_type, i.headers, i.payload
        from item i where i.pending > 0
    ),
    counted as (
        insert into flow_count (flow_id, held, live)
        select publish_flow_v1.flow_id, count(*) filter (where i.pending > 0), count(*) filter (where i.pending = 0) from item i
    ),
    inserted as (
        insert into message (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
            queue, channel, kind, content_type, headers, payload, by_kind, flow_id)
        select i.id, i.channel_id, coalesce(i.at, v_now + i.delay, v_now), v_now, v_now,
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

-- The holder of a lease adds nodes to its message's flow. They become nodes when this lease completes the message, and
-- are forgotten if it ends otherwise, so that an attempt that is repeated adds them once.
--
-- The arrays are those of publish_flow_v1. Answers the new ids; no ids: the lease is lost ('lost'), the message belongs to
-- no flow ('none'). Locks the lease in share mode: it cannot be completed meanwhile.
create or replace function "laneway".stage_nodes_v1(
    p_id bigint, p_fence bigint, p_when text[], p_parents bigint[], p_children integer[], p_places integer[],
    p_payload bytea[], p_queue text[], p_channel text[], p_kind text[], p_content_type text[], p_headers text[],
    p_priority smallint[], p_delay interval[], p_at timestamptz[], p_expires_in interval[], p_expires_at timestamptz[],
    p_max_attempts integer[], out ids bigint[], out status text
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    v_flow_id bigint;
    v_count integer := coalesce(cardinality(p_payload), 0);
    v_channel_id uuid := only_channel_id_v1(p_queue, p_channel);
begin
    perform check_messages_v1(
        p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, null, null, p_priority, p_delay, p_at, p_expires_in,
        p_expires_at, p_max_attempts);
    perform 1 from lease l where l.message_id = p_id and l.fence = p_fence for share;
    if not found then
        status := 'lost';
        return;
    end if;
    v_flow_id := (select m.flow_id from message m where m.id = p_id);
    if v_flow_id is null then
        status := 'none';
        return;
    end if;
    -- What an earlier attempt left.
    delete from flow_held h where h.adder = p_id and h.fence <> p_fence;
    ids := array(select nextval('message_id') from generate_series(1, v_count));
    if exists (
        select from unnest(p_parents, p_children) e(parent, child)
        where e.child not between 1 and v_count or e.parent is null
            or e.parent <= 0 and -e.parent not between 1 and e.child - 1
            or e.parent > 0 and not exists (select from flow_node n where n.id = e.parent and n.flow_id = v_flow_id offset 0)
                and not exists (select from flow_held h where h.id = e.parent and h.adder = p_id and h.fence = p_fence offset 0)
    ) then
        raise exception 'laneway: a node of a flow can only come after nodes that were added before it' using errcode = '22023';
    end if;
    insert into flow_held (id, flow_id, adder, fence, parents, run_when, delay, at, expires_in, expires_at, max_attempts, priority,
        channel_id, queue, channel, kind, content_type, headers, payload)
    select x.id, v_flow_id, p_id, p_fence, coalesce(e.parents, '{}'), coalesce(x.run_when, p_when[1], 'completed'),
        coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end), x.at,
        coalesce(x.expires_in, case when cardinality(p_expires_in) = 1 then p_expires_in[1] end), x.expires_at,
        coalesce(x.max_attempts, p_max_attempts[1], 20), coalesce(x.priority, p_priority[1], 0)::smallint,
        coalesce(v_channel_id, channel_id_v1(coalesce(x.queue, p_queue[1]), coalesce(x.channel, p_channel[1]))),
        coalesce(x.queue, p_queue[1]), coalesce(x.channel, p_channel[1]), coalesce(x.kind, p_kind[1], ''),
        coalesce(x.content_type, p_content_type[1], 'application/octet-stream'), x.headers::jsonb, x.payload
    from unnest(
        stage_nodes_v1.ids, p_when, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_priority,
        p_delay, p_at, p_expires_in, p_expires_at, p_max_attempts
    ) with ordinality x(id, run_when, payload, queue, channel, kind, content_type, headers, priority,
        delay, at, expires_in, expires_at, max_attempts, number)
    left join (
        select e.child, array_agg(case when e.parent < 0 then stage_nodes_v1.ids[-e.parent] else e.parent end order by e.place) as parents
        from unnest(p_parents, p_children, p_places) e(parent, child, place) group by e.child
    ) e on e.child = x.number;
    status := 'staged';
end
$$;

-- The parents of a node, in the order in which they were given.
create or replace function "laneway".parents_v1(p_id bigint)
returns table (id bigint, kind text, state text)
language sql stable
set search_path = "laneway", pg_temp
as $$
    select n.id, n.kind, n.state from flow_edge e join flow_node n on n.id = e.parent where e.child = p_id order by e.place
$$;

-- Part of completing messages of flows: what their holders added become nodes, those of this fence only. None in a flow
-- that was cancelled. The caller has locked the flows, and the parents that were there before.
create or replace function "laneway".add_staged_v1(p_ids bigint[], p_fences bigint[], p_locked bigint[], p_now timestamptz)
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
    v_new bigint[];
    v_counts integer[];
    v_missed integer[];
begin
    delete from flow_held h using unnest(p_ids, p_fences) x(id, fence)
    where h.adder = x.id and (h.fence <> x.fence or exists (select from flow f where f.id = h.flow_id and f.cancelled_at is not null));
    v_ids := array(select h.id from flow_held h where h.adder = any(p_ids) order by h.id);
    if v_ids = '{}' then
        return;
    end if;
    with node as (
        insert into flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
        select h.id, h.flow_id, cardinality(h.parents), h.run_when, 'held', h.queue, h.channel, h.kind
        from flow_held h where h.id = any(v_ids)
        returning flow_node.flow_id
    ),
    edge as (
        insert into flow_edge (parent, child, strict, place)
        select p.parent, h.id, h.run_when = 'completed', p.place
        from flow_held h cross join lateral unnest(h.parents) with ordinality p(parent, place) where h.id = any(v_ids)
    )
    insert into flow_count (flow_id, held) select n.flow_id, count(*) from node n group by n.flow_id;
    update flow_held h set adder = null, fence = null, parents = null where h.id = any(v_ids);
    v_new := v_ids;
    -- Parents that were decided before their child came, unless somebody goes on with their children; nodes without any
    -- are free.
    select array_agg(x.id), array_agg(x.n), array_agg(x.missed) into v_ids, v_counts, v_missed
    from (
        select c.id, count(p.id)::integer as n, count(p.id) filter (where p.state <> 'completed')::integer as missed
        from unnest(v_ids) c(id)
        left join lateral (
            select n.id, n.state from flow_edge e join flow_node n on n.id = e.parent
            where e.child = c.id and (n.state not in ('held', 'live', 'dead') or n.died and not e.strict)
                and not exists (select from flow_undecided u where u.parent = n.id and u.start <= c.id
                    and case when e.strict then u.strict else u.others end offset 0)
            offset 0
        ) p on true
        group by c.id
        having count(p.id) > 0 or not exists (select from flow_edge e where e.child = c.id offset 0)
    ) x;
    perform decide_nodes_v1(v_ids, v_counts, v_missed, p_locked || v_new, p_now);
end
$$;

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
        select g.id, g.channel_id, coalesce(g.at, p_now + g.delay, p_now), p_now, p_now,
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
    ),
    counted as (
        -- Their ids are old, as those of a bulk publish: without this no minute would count them.
        insert into staged_count (at, last_id, queue, kind, n)
        select p_now, max(i.id), i.queue, i.kind, count(*) from inserted i group by i.queue, i.kind
    )
    select array_agg(i.id), array_agg(distinct i.queue) filter (where i.due < p_now + interval '2 seconds'), array_agg(distinct i.kind)
    into v_ids, v_queues, v_kinds
    from inserted i;
    perform announce_nodes_v1(v_ids, v_queues, v_kinds, p_now);
end
$$;

-- Part of publishing nodes, and of publishing by COPY: tell listeners and sleeping workers. Null: there are none.
create or replace function "laneway".announce_nodes_v1(p_ids bigint[], p_queues text[], p_kinds text[], p_now timestamptz)
returns void
language plpgsql
set search_path = "laneway", pg_temp
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
