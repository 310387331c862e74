-- Part of every verb that ends messages of flows, or makes them dead letters: their children are decided, in the same
-- transaction. p_outcome: completed, cancelled, lapsed, discarded or dead; p_fences: of those that a handler completed.
--
-- Keeps: an edge is decided once. A parent that dies decides the children that do not wait for its completion; the
-- others when it completes after a redrive, or ends otherwise.
-- Locks all nodes that this can touch in one order, so that two that end parents of the same children do not wait for each
-- other in a circle; flows before nodes. Whoever adds nodes has the parents locked, so edges that are read after the lock
-- are all there are.
create or replace function "laneway".end_nodes_v1(p_ids bigint[], p_fences bigint[], p_outcome text, p_now timestamptz)
returns void
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
    v_locked bigint[];
    v_died bigint[];
    v_children bigint[];
    v_counts integer[];
begin
    if v_staged and p_outcome = 'completed' then
        perform 1 from flow f where f.id = any(array(select h.flow_id from flow_held h where h.adder = any(p_ids)))
        order by f.id for share;
    elsif v_staged then
        delete from flow_held h where h.adder = any(p_ids);
    end if;
    -- Children, and theirs as far as they may turn out not to run.
    v_locked := array(
        with recursive reach(id, spreads) as (
            select e.child, c.state = 'held' and (
                case when p_outcome = 'completed' then c.run_when = 'failed' or c.missed > 0 else c.run_when = 'completed' end)
            from flow_edge e join flow_node c on c.id = e.child where e.parent = any(p_ids)
            union
            select e.child, c.state = 'held' and c.run_when <> 'ended'
            from reach r join flow_edge e on e.parent = r.id join flow_node c on c.id = e.child where r.spreads
        )
        select r.id from reach r)
        || p_ids
        || array(select unnest(h.parents) from flow_held h where v_staged and h.adder = any(p_ids));
    -- No condition outside of it: the planner would move that into the query, and only those that meet it were locked.
    with locked as materialized (
        select k.id, k.died from flow_node k where k.id = any(v_locked) order by k.id for no key update
    )
    select array_agg(n.id) filter (where n.died and n.id = any(p_ids)) into v_died from locked n;

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

    select array_agg(x.child), array_agg(x.n) into v_children, v_counts
    from (
        select e.child, count(*)::integer as n from flow_edge e
        where e.parent = any(p_ids) and case
            when p_outcome = 'dead' then not e.strict and (v_died is null or e.parent <> all(v_died))
            else e.strict or v_died is null or e.parent <> all(v_died) end
        group by e.child
    ) x;
    if v_children is not null then
        perform decide_nodes_v1(v_children, v_counts,
            case when p_outcome = 'completed' then array_fill(0, array[cardinality(v_counts)]) else v_counts end, p_now);
    end if;
    if v_staged and p_outcome = 'completed' then
        perform add_staged_v1(p_ids, p_fences, p_now);
    end if;
end
$$;

-- Part of ending nodes: so many parents of each of these were decided, so many of them otherwise than by completing. A node
-- whose last parent this was is published, or is not to be run: then its own children are decided in turn.
-- The caller has locked them.
create or replace function "laneway".decide_nodes_v1(p_ids bigint[], p_counts integer[], p_missed integer[], p_now timestamptz)
returns void
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
        select array_agg(x.child), array_agg(x.n), array_agg(x.n) into p_ids, p_counts, p_missed
        from (select e.child, count(*)::integer as n from flow_edge e where e.parent = any(v_skipped) group by e.child) x;
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
    v_now timestamptz := coalesce(p_now, clock_timestamp());
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
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_flows bigint[];
    v_nodes bigint[];
    v_done bigint := 0;
begin
    if exists (select from flow_count) then
        v_flows := array(
            select f.id from flow f
            where f.id = any(array(select distinct k.flow_id from (select c.flow_id from flow_count c order by c.flow_id limit 10 * p_limit) k))
            order by f.id for no key update skip locked);
        perform close_flow_v1(x.id, v_now) from unnest(v_flows) x(id);
    end if;
    if exists (select from flow f where f.expires_at <= v_now) then
        v_flows := array(
            select f.id from flow f where f.expires_at <= v_now order by f.expires_at limit 100 for update skip locked);
        v_nodes := array(
            select n.id from unnest(v_flows) f(id)
            cross join lateral (select k.id from flow_node k where k.flow_id = f.id order by k.id limit p_limit) n limit p_limit);
        delete from flow_edge e where e.parent = any(v_nodes);
        delete from flow_edge e where e.child = any(v_nodes);
        delete from flow_node n where n.id = any(v_nodes);
        delete from flow f where f.id = any(v_flows) and not exists (select from flow_node n where n.flow_id = f.id offset 0);
        v_done := cardinality(v_nodes);
    end if;
    return v_done;
end
$$;

-- Part of upkeep and of publishing a flow of the same name: add up what has changed, and note if the flow has ended. Nothing
-- can come to it then: only its own running messages add to it.
create or replace function "laneway".close_flow_v1(p_flow_id bigint, p_now timestamptz)
returns void
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
begin
    perform 1 from flow f where f.id = p_flow_id and f.ended_at is null for no key update;
    if not found then
        return;
    end if;
    with gone as (
        delete from flow_count c where c.flow_id = p_flow_id
        returning c.held, c.live, c.dead, c.completed, c.failed, c.skipped
    ),
    more as (
        select coalesce(sum(g.held), 0) as held, coalesce(sum(g.live), 0) as live, coalesce(sum(g.dead), 0) as dead,
            coalesce(sum(g.completed), 0) as completed, coalesce(sum(g.failed), 0) as failed, coalesce(sum(g.skipped), 0) as skipped,
            count(*) as n
        from gone g
    )
    update flow f set held = f.held + m.held, live = f.live + m.live, dead = f.dead + m.dead,
        completed = f.completed + m.completed, failed = f.failed + m.failed, skipped = f.skipped + m.skipped,
        ended_at = case when f.held + m.held = 0 and f.live + m.live = 0 and f.dead + m.dead = 0 then p_now end,
        expires_at = case when f.held + m.held = 0 and f.live + m.live = 0 and f.dead + m.dead = 0 then p_now + f.keep end
    from more m where f.id = p_flow_id and m.n > 0;
end
$$;
