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
