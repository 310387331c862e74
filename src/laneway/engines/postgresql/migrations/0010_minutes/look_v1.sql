-- Part of looks: what the tables tell about channels of these queues, from at most p_most wakes (the oldest), turns (the
-- next) and parked channels for all of them together, 2000 leases in 500 channels, and 200 dead letters. Several rows a channel.
-- cut: not all of the queue's wakes, turns, parked channels or leases were read; cut_dead: not all dead letters. Such a row
-- has no channel. The name is given where the rows have it.
create or replace function "laneway".look_v1(p_queues text[], p_most integer, p_now timestamptz)
returns table (
    queue text, channel_id uuid, channel text, waiting bigint, scheduled bigint, leased bigint, dead bigint, oldest timestamptz,
    turn timestamptz, cut boolean, cut_dead boolean, looked bigint
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_each bigint := greatest(p_most / greatest(cardinality(p_queues), 1), 20);
    v_leases constant bigint := 2000;
    v_holders constant bigint := 500;
    v_dead bigint := greatest(200 / greatest(cardinality(p_queues), 1), 20);
begin
    return query
    with woken as materialized (
        select w.queue, w.channel_id, w.channel, w.n, w.due, w.n > 0 and w.due <= p_now as old
        from unnest(p_queues) q(queue)
        cross join lateral (select k.* from wake k where k.queue = q.queue order by k.at limit v_each + 1) w
    ),
    turns as materialized (
        select t.queue, t.channel_id, t.n, t.due, t.turn
        from unnest(p_queues) q(queue)
        cross join lateral (
            select k.* from token k where k.queue = q.queue and k.turn is not null order by k.turn limit v_each + 1) t
    ),
    parked as materialized (
        select t.queue, t.channel_id, t.n, t.due
        from unnest(p_queues) q(queue)
        cross join lateral (
            select k.* from token k where k.queue = q.queue and k.turn is null and k.n <> 0 limit v_each + 1) t
    ),
    held as materialized (
        select l.channel_id, count(*) as n
        from (select k.channel_id from lease k order by k.message_id limit v_leases + 1) l group by l.channel_id
    ),
    holder as materialized (
        select h.channel_id, h.n from held h limit v_holders
    ),
    died as materialized (
        select d.queue, d.channel
        from unnest(p_queues) q(queue)
        cross join lateral (
            select k.queue, k.channel from dead k where k.queue = q.queue order by k.died_at, k.id limit v_dead + 1) d
    )
    select w.queue, w.channel_id, min(w.channel), coalesce(sum(w.n) filter (where w.due <= p_now), 0)::bigint,
        coalesce(sum(w.n) filter (where w.due > p_now), 0)::bigint, 0::bigint, 0::bigint,
        min(w.due) filter (where w.old), null::timestamptz, false, false, count(*)
    from woken w group by w.queue, w.channel_id
    union all
    select t.queue, t.channel_id, null, t.n, 0, 0, 0, case when cardinality(t.due) = 1 then t.due[1] else (select min(d) from unnest(t.due) d) end, t.turn, false, false, 1 from turns t
    union all
    select t.queue, t.channel_id, null, t.n, 0, 0, 0, case when cardinality(t.due) = 1 then t.due[1] else (select min(d) from unnest(t.due) d) end, null, false, false, 1 from parked t
    union all
    select c.queue, h.channel_id, null, 0, 0, h.n, 0, null, null, false, false, h.n
    from holder h cross join lateral (select k.queue from channel k where k.id = h.channel_id offset 0) c
    where c.queue = any(p_queues)
    union all
    select d.queue, channel_id_v1(d.queue, d.channel), d.channel, 0, 0, 0, d.n, null, null, false, false, d.n
    from (select d.queue, d.channel, count(*) as n from died d group by d.queue, d.channel) d
    union all
    select q.queue, null, null, 0, 0, 0, 0, null, null, x.cut, x.cut_dead, 0
    from unnest(p_queues) q(queue)
    cross join lateral (
        select (select count(*) from woken w where w.queue = q.queue) > v_each
            or (select count(*) from turns t where t.queue = q.queue) > v_each
            or (select count(*) from parked t where t.queue = q.queue) > v_each
            or (select sum(h.n) from held h) > v_leases or (select count(*) from held h) > v_holders as cut,
            (select count(*) from died d where d.queue = q.queue) > v_dead as cut_dead
    ) x
    where x.cut or x.cut_dead;
end
$$;
