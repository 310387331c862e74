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
