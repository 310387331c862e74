-- Flows with their counts of now. dead: nothing runs, and a dead letter holds what is left.
create view "laneway".flow_v1 as
select c.id, c.queue, c.name, c.created_at, c.cancelled_at, c.ended_at,
    case when c.live > 0 then 'running' when c.dead > 0 then 'dead' when c.cancelled_at is not null then 'cancelled'
        when c.failed > 0 then 'failed' else 'completed' end as state,
    c.held, c.live, c.dead, c.completed, c.failed, c.skipped
from (
    select f.id, f.queue, f.name, f.created_at, f.cancelled_at, f.ended_at,
        (f.held + coalesce(n.held, 0))::bigint as held, (f.live + coalesce(n.live, 0))::bigint as live,
        (f.dead + coalesce(n.dead, 0))::bigint as dead, (f.completed + coalesce(n.completed, 0))::bigint as completed,
        (f.failed + coalesce(n.failed, 0))::bigint as failed, (f.skipped + coalesce(n.skipped, 0))::bigint as skipped
    from "laneway".flow f
    left join lateral (
        select sum(k.held) as held, sum(k.live) as live, sum(k.dead) as dead, sum(k.completed) as completed,
            sum(k.failed) as failed, sum(k.skipped) as skipped
        from "laneway".flow_count k where k.flow_id = f.id
    ) n on true
) c;

-- parents: the first hundred; flow_edge_v1 has all.
create view "laneway".flow_node_v1 as
select n.id, n.flow_id, n.queue, n.channel, n.kind, n.run_when,
    case when n.state <> 'live' then n.state when l.message_id is not null then 'leased' else 'waiting' end as state,
    n.pending, n.missed, n.ended_at,
    array(select e.parent from "laneway".flow_edge e where e.child = n.id order by e.place limit 100) as parents
from "laneway".flow_node n left join "laneway".lease l on l.message_id = n.id;

create view "laneway".flow_edge_v1 as select e.parent, e.child, e.place from "laneway".flow_edge e;

create view "laneway".flow_dead_v1 as
select d.flow_id, d.id, d.queue, d.channel, d.kind, d.died_at from "laneway".dead d where d.flow_id is not null;
