-- Part of completing messages of flows: what their holders added become nodes, those of this fence only. None in a flow
-- that was cancelled. The caller has locked the flows, and the parents that were there before.
create or replace function "laneway".add_staged_v1(p_ids bigint[], p_fences bigint[], p_now timestamptz)
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
    -- Parents that were decided before their child came; nodes without any are free.
    select array_agg(x.id), array_agg(x.n), array_agg(x.missed) into v_ids, v_counts, v_missed
    from (
        select c.id, count(p.id)::integer as n, count(p.id) filter (where p.state <> 'completed')::integer as missed
        from unnest(v_ids) c(id)
        left join lateral (
            select n.id, n.state from flow_edge e join flow_node n on n.id = e.parent
            where e.child = c.id and (n.state not in ('held', 'live', 'dead') or n.died and not e.strict)
            offset 0
        ) p on true
        group by c.id
        having count(p.id) > 0 or not exists (select from flow_edge e where e.child = c.id offset 0)
    ) x;
    perform decide_nodes_v1(v_ids, v_counts, v_missed, p_now);
end
$$;
