-- Part of looks: the names of the queues that have messages, or (p_empty) a channel, at most p_most. Goes from one name to the next in each
-- index, backwards: the newest entry of a queue is read, not the dead ones that lie before it.
create or replace function "laneway".look_queues_v1(p_most integer, p_empty boolean default false)
returns text[]
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
    with recursive woken(queue, place) as (
        (select w.queue, 1 from wake w order by w.queue desc, w.at desc limit 1)
        union all
        select (select w.queue from wake w where w.queue < p.queue order by w.queue desc, w.at desc limit 1), p.place + 1
        from woken p where p.queue is not null and p.place <= p_most
    ),
    ring(queue, place) as (
        (select t.queue, 1 from token t where t.turn is not null order by t.queue desc, t.turn desc limit 1)
        union all
        select (
            select t.queue from token t where t.turn is not null and t.queue < p.queue
            order by t.queue desc, t.turn desc limit 1), p.place + 1
        from ring p where p.queue is not null and p.place <= p_most
    ),
    parked(queue, place) as (
        (select t.queue, 1 from token t where t.turn is null and t.n > 0 order by t.queue desc limit 1)
        union all
        select (
            select t.queue from token t where t.turn is null and t.n > 0 and t.queue < p.queue
            order by t.queue desc limit 1), p.place + 1
        from parked p where p.queue is not null and p.place <= p_most
    ),
    died(queue, place) as (
        (select d.queue, 1 from dead d order by d.queue desc, d.died_at desc, d.id desc limit 1)
        union all
        select (
            select d.queue from dead d where d.queue < p.queue
            order by d.queue desc, d.died_at desc, d.id desc limit 1), p.place + 1
        from died p where p.queue is not null and p.place <= p_most
    ),
    named(queue, place) as (
        (select c.queue, 1 from channel c where p_empty order by c.queue desc, c.name desc limit 1)
        union all
        select (
            select c.queue from channel c where c.queue < p.queue order by c.queue desc, c.name desc limit 1), p.place + 1
        from named p where p.queue is not null and p.place <= p_most
    ),
    -- Where all messages are leased: the newest leases, and what was counted.
    leased as (
        select c.queue from (select l.channel_id from lease l order by l.message_id desc limit 100) l
        join channel c on c.id = l.channel_id
    )
    select array(
        select x.queue from (
            select w.queue from woken w union select r.queue from ring r union select p.queue from parked p
            union select d.queue from died d union select n.queue from named n union select l.queue from leased l
            union (select k.queue from live_count k where k.live > 0 or k.dead > 0 order by k.queue limit 10 * p_most)
        ) x
        where x.queue is not null order by x.queue limit p_most)
$$;
