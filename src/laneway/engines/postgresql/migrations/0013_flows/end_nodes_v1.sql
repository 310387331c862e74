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
    select array_agg(n.id) filter (where n.died) into v_died
    from (select k.id, k.died from flow_node k where k.id = any(v_locked) order by k.id for no key update) n
    where n.id = any(p_ids);

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
