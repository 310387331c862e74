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
