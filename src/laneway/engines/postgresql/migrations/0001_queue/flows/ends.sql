-- Part of every verb that ends messages of flows, or makes them dead letters: their children are decided, in the same
-- transaction. p_outcome: completed, cancelled, lapsed, discarded or dead. p_messages, p_fences: leases that a handler
-- completed, of these nodes and perhaps of others.
--
-- Keeps: an edge is decided once. A parent that dies decides the children that do not wait for its completion; the
-- others when it completes after a redrive, or ends otherwise.
-- Locks flows, then all nodes that it writes by one statement in the order of ids, and nothing after that: whatever it
-- has not locked is not decided here but left in flow_undecided. So nobody waits in a circle, and no call takes long.
-- Whoever adds nodes has the parents locked, so edges that are read after the lock are all there are.
-- p_locked: what the caller has locked with lock_ends_v1, together with other nodes that it ends.
create or replace function "laneway".end_nodes_v1(
    p_ids bigint[], p_messages bigint[], p_fences bigint[], p_outcome text, p_now timestamptz, p_locked bigint[] default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set plan_cache_mode = force_generic_plan
as $$
declare
    v_staged boolean := exists (select from flow_held h where h.adder = any(p_ids));
    v_locked bigint[] := p_locked;
    v_edges bigint;
    v_found bigint;
    v_died bigint[];
    v_children bigint[];
    v_counts integer[];
    v_missed integer[];
begin
    if v_staged and p_outcome = 'completed' then
        perform 1 from flow f where f.id = any(array(select h.flow_id from flow_held h where h.adder = any(p_ids)))
        order by f.id for share;
    elsif v_staged then
        delete from flow_held h where h.adder = any(p_ids);
    end if;
    if v_locked is null then
        select l.locked, l.edges, l.died into v_locked, v_edges, v_died
        from lock_ends_v1(p_ids, p_outcome <> 'dead', p_outcome <> 'completed',
            array(select unnest(h.parents) from flow_held h where v_staged and h.adder = any(p_ids))) l;
    else
        select array_agg(n.id) into v_died from flow_node n where n.id = any(p_ids) and n.died;
    end if;

    with ended as (
        update flow_node n set state = p_outcome, ended_at = p_now, died = n.died or p_outcome = 'dead'
        where n.id = any(p_ids)
        returning n.flow_id
    )
    insert into flow_count (flow_id, live, dead, completed, failed)
    select e.flow_id, case when p_outcome = 'discarded' then 0 else -count(*) end,
        case p_outcome when 'discarded' then -count(*) when 'dead' then count(*) else 0 end,
        case when p_outcome = 'completed' then count(*) else 0 end,
        case when p_outcome in ('completed', 'dead') then 0 else count(*) end
    from ended e group by e.flow_id;

    if v_edges < 5000 then
        select array_agg(x.child) filter (where x.n > 0), array_agg(x.n) filter (where x.n > 0), coalesce(sum(x.found), 0)
        into v_children, v_counts, v_found
        from (
            select e.child, count(*) as found, count(*) filter (where
                e.strict or v_died is null or e.parent <> all(v_died))::integer as n
            from flow_edge e where e.parent = any(p_ids) and (p_outcome <> 'dead' or not e.strict)
            group by e.child
        ) x;
        v_missed := case when p_outcome = 'completed' then array_fill(0, array[coalesce(cardinality(v_counts), 0)]) else v_counts end;
    end if;
    -- As many as a call may decide, or more than there were before the lock: only what is locked.
    if v_edges is null or v_edges is distinct from v_found then
        select e.children, e.counts, e.missed, e.locked into v_children, v_counts, v_missed, v_locked
        from decided_edges_v1(p_ids, array_fill(p_outcome <> 'dead', array[cardinality(p_ids)]),
            array(select v_died is null or x.id <> all(v_died) from unnest(p_ids) with ordinality x(id, number) order by x.number),
            array_fill(p_outcome <> 'completed', array[cardinality(p_ids)]), array_fill(0::bigint, array[cardinality(p_ids)]),
            v_locked) e;
    end if;
    if v_children is not null then
        perform decide_nodes_v1(v_children, v_counts, v_missed, v_locked, p_now);
    end if;
    if v_staged and p_outcome = 'completed' then
        perform add_staged_v1(p_messages, p_fences, v_locked, p_now);
    end if;
end
$$;

-- Part of ending nodes: locks them in the order of ids, with their children, and theirs as far as they may turn out not
-- to run; not more than some thousands. p_strict: the children that wait for their completion are decided too; p_missed:
-- they have not completed; p_more: others to lock. p_left: also nodes that ended before, with what is left of them in
-- flow_undecided. Answers what is locked, how many edges these nodes have, 5,000 if there are more, and which of all
-- these were dead once.
create or replace function "laneway".lock_ends_v1(
    p_ids bigint[], p_strict boolean, p_missed boolean, p_more bigint[], p_left bigint[] default '{}',
    out locked bigint[], out edges bigint, out died bigint[]
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set plan_cache_mode = force_generic_plan
as $$
declare
    v_spreads bigint[];
begin
    select coalesce(array_agg(c.id), '{}'), coalesce(sum(e.n), 0), array_agg(c.id) filter (where
        c.state = 'held' and (e.missed and c.run_when = 'completed' or e.met and (c.run_when = 'failed' or c.missed > 0)))
    into locked, edges, v_spreads
    from (
        select k.child, bool_or(k.missed) as missed, not bool_and(k.missed) as met, count(*) as n
        from (
            select e.child, p_missed as missed from flow_edge e where e.parent = any(p_ids) and (p_strict or not e.strict)
            union all
            select e.child, u.missed
            from flow_undecided u
            cross join lateral (
                select k.child from flow_edge k
                where k.parent = u.parent and k.child >= u.start and case when k.strict then u.strict else u.others end
                order by k.child limit 5000) e
            where u.parent = any(p_left)
            limit 5000
        ) k group by k.child
    ) e
    join flow_node c on c.id = e.child;
    -- Apart from that: a recursion costs more than all the rest of this, however little it finds.
    if v_spreads is not null then
        with recursive reach(id, spreads) as (
            select x.id, true from unnest(v_spreads) x(id)
            union
            select e.child, c.state = 'held' and c.run_when <> 'ended'
            from reach r join flow_edge e on e.parent = r.id join flow_node c on c.id = e.child where r.spreads
        )
        select locked || array_agg(x.id) into locked from (select r.id from reach r limit 10000) x;
    end if;
    locked := locked || p_ids || p_more || p_left;
    select array_agg(k.id) filter (where k.died) into died
    from (select n.id, n.died from flow_node n where n.id = any(locked) order by n.id for no key update) k;
end
$$;

-- Part of ending nodes: the children that these parents decide, how many of their parents that are, and how many of those
-- were missed. Of each parent in the order of ids, up to the first child that is not locked: what is left is written
-- to flow_undecided. The caller has locked the parents. Children that came late are locked here if they are later in the
-- order than all that is locked.
create or replace function "laneway".decided_edges_v1(
    p_parents bigint[], p_strict boolean[], p_others boolean[], p_missed boolean[], p_start bigint[], p_locked bigint[],
    out children bigint[], out counts integer[], out missed integer[], out locked bigint[]
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = on
as $$
#variable_conflict use_column
declare
    v_more bigint[];
begin
    locked := p_locked;
    if cardinality(p_locked) <= 5000 then
        v_more := array(
            select e.child
            from unnest(p_parents, p_start) i(parent, start)
            cross join (select max(x.id) as id from unnest(p_locked) x(id)) last
            cross join lateral (
                select k.child from flow_edge k where k.parent = i.parent and k.child >= i.start and k.child > last.id
                order by k.child limit 1000) e
            limit 1000);
        perform from flow_node k where k.id = any(v_more) order by k.id for no key update;
        locked := p_locked || v_more;
    end if;
    with item as materialized (
        select i.* from unnest(p_parents, p_strict, p_others, p_missed, p_start) i(parent, strict, others, missed, start)
    ),
    edge as materialized (
        select i.parent, i.strict as key, i.missed, e.child, l.id is not null as ours
        from item i
        cross join lateral (
            select k.child from flow_edge k
            where k.parent = i.parent and k.child >= i.start and case when k.strict then i.strict else i.others end
            order by k.child limit cardinality(locked) + 1) e
        left join (select distinct x.id from unnest(locked) x(id)) l on l.id = e.child
    ),
    cut as materialized (
        select e.parent, e.key, min(e.child) as child from edge e where not e.ours group by e.parent, e.key
    ),
    gone as (
        delete from flow_undecided u using item i
        where u.parent = i.parent and u.strict = i.strict
            and not exists (select from cut c where c.parent = i.parent and c.key = i.strict)
    ),
    kept as (
        insert into flow_undecided as u (parent, strict, others, missed, start, flow_id)
        select i.parent, i.strict, i.others, i.missed, c.child, n.flow_id
        from cut c join item i on i.parent = c.parent and i.strict = c.key join flow_node n on n.id = i.parent
        on conflict (parent, strict) do update set start = excluded.start
    )
    select array_agg(x.child), array_agg(x.n), array_agg(x.missed) into children, counts, missed
    from (
        select e.child, count(*)::integer as n, count(*) filter (where e.missed)::integer as missed
        from edge e left join cut c on c.parent = e.parent and c.key = e.key
        where c.child is null or e.child < c.child
        group by e.child
    ) x;
end
$$;

-- Part of upkeep, and by itself: go on with what the ends of nodes have left. Answers how many nodes had something left.
-- Several may do so at once: what is left of a node is read again once it is locked.
create or replace function "laneway".decide_left_v1(p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_left bigint[] := undecided_nodes_v1();
begin
    if v_left <> '{}' then
        perform decide_locked_v1(v_left, (select l.locked from lock_ends_v1('{}', true, true, '{}', v_left) l), write_time_v1(p_now));
    end if;
    return cardinality(v_left);
end
$$;

-- Part of upkeep: what is left of these nodes, which the caller has locked with what comes after them.
create or replace function "laneway".decide_locked_v1(p_left bigint[], p_locked bigint[], p_now timestamptz)
returns void
language plpgsql
as $$
declare
    v_parents bigint[];
    v_strict boolean[];
    v_others boolean[];
    v_missed boolean[];
    v_start bigint[];
    v_edges record;
begin
    select array_agg(u.parent), array_agg(u.strict), array_agg(u.others), array_agg(u.missed), array_agg(u.start)
    into v_parents, v_strict, v_others, v_missed, v_start
    from flow_undecided u where u.parent = any(p_left);
    if v_parents is not null then
        select e.* into v_edges from decided_edges_v1(v_parents, v_strict, v_others, v_missed, v_start, p_locked) e;
        perform decide_nodes_v1(v_edges.children, v_edges.counts, v_edges.missed, v_edges.locked, p_now);
    end if;
end
$$;

-- Part of upkeep: nodes that have left something, the first ones.
create or replace function "laneway".undecided_nodes_v1()
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    return array(select distinct x.parent from (select u.parent from flow_undecided u order by u.parent limit 5000) x);
end
$$;

-- Part of ending nodes: so many parents of each of these were decided, so many of them otherwise than by completing. A node
-- whose last parent this was is published, or is not to be run: then its own children are decided in turn.
-- The caller has locked them, and says what else it has locked.
create or replace function "laneway".decide_nodes_v1(
    p_ids bigint[], p_counts integer[], p_missed integer[], p_locked bigint[], p_now timestamptz
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set plan_cache_mode = force_generic_plan
as $$
declare
    v_released bigint[] := '{}';
    v_now_free bigint[];
    v_skipped bigint[];
begin
    while p_ids is not null loop
        with turned as (
            update flow_node c set pending = c.pending - x.n, missed = c.missed + x.missed,
                state = case when c.state <> 'held' or c.pending > x.n then c.state
                    when c.run_when = 'completed' and c.missed + x.missed > 0 then 'skipped'
                    when c.run_when = 'failed' and c.missed + x.missed = 0 then 'skipped'
                    else 'live' end,
                ended_at = case when c.state = 'held' and c.pending = x.n and (
                    c.run_when = 'completed' and c.missed + x.missed > 0
                    or c.run_when = 'failed' and c.missed + x.missed = 0) then p_now else c.ended_at end
            from unnest(p_ids, p_counts, p_missed) x(id, n, missed)
            where c.id = x.id
            returning c.id, c.flow_id, c.pending, c.state
        ),
        changed as materialized (
            select t.id, t.flow_id, t.state from turned t where t.pending = 0 and t.state in ('live', 'skipped')
        ),
        counted as (
            insert into flow_count (flow_id, held, live, skipped)
            select c.flow_id, -count(*), count(*) filter (where c.state = 'live'), count(*) filter (where c.state = 'skipped')
            from changed c group by c.flow_id
        )
        select array_agg(c.id) filter (where c.state = 'live'), array_agg(c.id) filter (where c.state = 'skipped')
        into v_now_free, v_skipped from changed c;
        v_released := v_released || coalesce(v_now_free, '{}');
        exit when v_skipped is null;
        delete from flow_held h where h.id = any(v_skipped);
        select e.children, e.counts, e.missed, e.locked into p_ids, p_counts, p_missed, p_locked
        from decided_edges_v1(v_skipped, array_fill(true, array[cardinality(v_skipped)]),
            array_fill(true, array[cardinality(v_skipped)]), array_fill(true, array[cardinality(v_skipped)]),
            array_fill(0::bigint, array[cardinality(v_skipped)]), p_locked) e;
    end loop;
    if v_released <> '{}' then
        perform release_nodes_v1(v_released, p_now);
    end if;
end
$$;

-- Part of redrive: dead letters of flows are messages again.
create or replace function "laneway".revive_nodes_v1(p_ids bigint[])
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
begin
    with back as (
        update flow_node n set state = 'live', ended_at = null
        where n.id = any(array(
            select k.id from flow_node k where k.id = any(p_ids) and k.state = 'dead' order by k.id for no key update))
        returning n.flow_id
    )
    insert into flow_count (flow_id, live, dead) select b.flow_id, count(*), -count(*) from back b group by b.flow_id;
end
$$;

-- cancel a flow: nothing more of it is released. Answers its nodes that are messages or dead letters now, which the caller
-- cancels and discards; no row if there is none, or no such flow.
--
-- Keeps: what was released before this is in the answer, nothing is released after it. Locks the flow, then its nodes in
-- order; they are read again once that is done.
create or replace function "laneway".cancel_flow_v1(p_flow_id bigint, p_now timestamptz default null)
returns table (id bigint, state text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
    v_ids bigint[];
begin
    update flow f set cancelled_at = v_now where f.id = p_flow_id and f.cancelled_at is null and f.ended_at is null;
    select array_agg(n.id) into v_ids
    from (
        select k.id, k.state from flow_node k where k.flow_id = p_flow_id and k.state = 'held'
        order by k.id for no key update
    ) n where n.state = 'held';
    if v_ids is not null then
        update flow_node n set state = 'cancelled', ended_at = v_now where n.id = any(v_ids);
        delete from flow_held h where h.id = any(v_ids);
        insert into flow_count (flow_id, held, failed) values (p_flow_id, -cardinality(v_ids), cardinality(v_ids));
    end if;
    return query
    select n.id, n.state from flow_node n where n.flow_id = p_flow_id and n.state in ('live', 'dead') order by n.id;
end
$$;

-- Part of upkeep: add up the counts of flows, note which have ended, and forget those that ended long enough ago, a bounded
-- number of nodes each time. Waits for nobody.
create or replace function "laneway".cleanup_flows_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_flows bigint[];
    v_nodes bigint[];
    v_done bigint := 0;
    v_left bigint := 10 * p_limit;
    v_flow bigint;
begin
    if exists (select from flow_count) then
        v_flows := array(
            select f.id from flow f
            where f.id = any(array(select distinct k.flow_id from (select c.flow_id from flow_count c order by c.flow_id limit 10 * p_limit) k))
            order by f.id for no key update skip locked);
        foreach v_flow in array v_flows loop
            v_left := v_left - close_flow_v1(v_flow, v_now, v_left);
            exit when v_left <= 0;
        end loop;
    end if;
    if exists (select from flow f where f.expires_at <= v_now) then
        v_flows := array(
            select f.id from flow f where f.expires_at <= v_now order by f.expires_at limit 100 for update skip locked);
        v_nodes := array(
            select n.id from unnest(v_flows) f(id)
            cross join lateral (select k.id from flow_node k where k.flow_id = f.id order by k.id limit p_limit) n limit p_limit);
        -- A node may have any number of edges: it goes when they have gone.
        delete from flow_edge e where e.ctid = any(array(
            select k.ctid from flow_edge k where k.parent = any(v_nodes) limit 5 * p_limit));
        delete from flow_edge e where e.ctid = any(array(
            select k.ctid from flow_edge k where k.child = any(v_nodes) limit 5 * p_limit));
        v_nodes := array(
            select n.id from unnest(v_nodes) n(id)
            where not exists (select from flow_edge e where e.parent = n.id offset 0)
                and not exists (select from flow_edge e where e.child = n.id offset 0));
        delete from flow_undecided u where u.parent = any(v_nodes);
        delete from flow_node n where n.id = any(v_nodes);
        delete from flow f where f.id = any(v_flows) and not exists (select from flow_node n where n.flow_id = f.id offset 0);
        v_done := cardinality(v_nodes);
    end if;
    return v_done;
end
$$;

-- Part of upkeep and of publishing a flow of the same name: add up what has changed, and note if the flow has ended. Nothing
-- can come to it then: only its own running messages add to it. Upkeep adds up p_limit rows, and goes on with the others.
-- Answers how many there were.
create or replace function "laneway".close_flow_v1(p_flow_id bigint, p_now timestamptz, p_limit bigint default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_rows tid[];
    v_rest boolean;
begin
    perform 1 from flow f where f.id = p_flow_id and f.ended_at is null for no key update;
    if not found then
        return 0;
    end if;
    v_rows := array(select c.ctid from flow_count c where c.flow_id = p_flow_id limit p_limit + 1);
    v_rest := cardinality(v_rows) > p_limit;
    if v_rest then
        v_rows := v_rows[:p_limit];
    end if;
    with gone as (
        delete from flow_count c where c.ctid = any(v_rows)
        returning c.held, c.live, c.dead, c.completed, c.failed, c.skipped
    ),
    more as (
        select coalesce(sum(g.held), 0) as held, coalesce(sum(g.live), 0) as live, coalesce(sum(g.dead), 0) as dead,
            coalesce(sum(g.completed), 0) as completed, coalesce(sum(g.failed), 0) as failed, coalesce(sum(g.skipped), 0) as skipped,
            count(*) as n
        from gone g
    ),
    sums as (
        select f.held + m.held = 0 and f.live + m.live = 0 and f.dead + m.dead = 0 and v_rest is not true as over, m.*
        from flow f cross join more m where f.id = p_flow_id and m.n > 0
    )
    update flow f set held = f.held + m.held, live = f.live + m.live, dead = f.dead + m.dead,
        completed = f.completed + m.completed, failed = f.failed + m.failed, skipped = f.skipped + m.skipped,
        ended_at = case when m.over then p_now end, expires_at = case when m.over then p_now + f.keep end
    from sums m where f.id = p_flow_id;
    return coalesce(cardinality(v_rows), 0);
end
$$;
