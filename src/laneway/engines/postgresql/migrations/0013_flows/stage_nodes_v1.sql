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
begin
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
            or e.parent > 0 and not exists (select from flow_node n where n.id = e.parent and n.flow_id = v_flow_id)
                and not exists (select from flow_held h where h.id = e.parent and h.adder = p_id and h.fence = p_fence)
    ) then
        raise exception 'laneway: a node of a flow can only come after nodes that were added before it' using errcode = '22023';
    end if;
    insert into flow_held (id, flow_id, adder, fence, parents, run_when, delay, at, expires_in, expires_at, max_attempts, priority,
        queue, channel, kind, content_type, headers, payload)
    select x.id, v_flow_id, p_id, p_fence, coalesce(e.parents, '{}'), coalesce(x.run_when, p_when[1], 'completed'),
        coalesce(x.delay, case when cardinality(p_delay) = 1 then p_delay[1] end), x.at,
        coalesce(x.expires_in, case when cardinality(p_expires_in) = 1 then p_expires_in[1] end), x.expires_at,
        coalesce(x.max_attempts, p_max_attempts[1], 20), coalesce(x.priority, p_priority[1], 0)::smallint,
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
