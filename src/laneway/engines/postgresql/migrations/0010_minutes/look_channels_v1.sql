-- channels: those of the queues (null: all) that hold anything or have a policy, the fullest first, then by name, after
-- the one that was seen last (p_seen: its waiting, queue and name).
--
-- If the rows that were read (look_v1) were not all there are, complete is false: then these are the fullest of what was
-- read, at least as full as it says; those that have names in the rows, if a prefix is asked for; and none if only those
-- with a policy or a pause are. The caller goes on with channel_names_v1. One row without a channel says so where none
-- was found.
create or replace function "laneway".look_channels_v1(
    p_queue text, p_prefix text, p_paused boolean, p_limited boolean, p_limit integer, p_most integer,
    p_seen bigint default null, p_seen_queue text default null, p_seen_channel text default null,
    p_now timestamptz default null
) returns table (
    complete boolean, looked bigint, queue text, channel text, waiting bigint, scheduled bigint, leased bigint, dead bigint,
    oldest timestamptz, exact boolean, concurrency bigint, rate double precision, burst bigint, backlog bigint,
    weight double precision, paused boolean, closing boolean, paused_until timestamptz, throttled boolean, waits_for text
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queues text[] := case when p_queue is null then look_queues_v1(1000, true) else array[p_queue] end;
    v_policies bigint;
begin
    v_policies := (
        select count(*) from (
            select from channel c
            where (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null or c.paused
                or c.closing) and c.queue = any(v_queues)
            limit p_most + 1) x);
    return query
    with part as materialized (
        select * from look_v1(v_queues, p_most, v_now)
    ),
    cut as materialized (
        select not exists (select from part p where p.channel_id is null) and v_policies <= p_most as complete,
            (select sum(p.looked) from part p) + v_policies as looked
    ),
    held as materialized (
        select p.queue, p.channel_id, min(p.channel) as channel, greatest(sum(p.waiting), 0) as waiting,
            greatest(sum(p.scheduled), 0) as scheduled, sum(p.leased) as leased, sum(p.dead) as dead,
            case when sum(p.waiting) > 0 then min(p.oldest) end as oldest, max(p.turn) as turn
        from part p where p.channel_id is not null group by p.queue, p.channel_id
        having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0
    ),
    chosen as materialized (
        select h.* from held h, cut k where k.complete
        union all
        (select h.* from held h, cut k
        where not k.complete and p_seen is null and p_paused is not true and p_limited is not true
            and (p_prefix is null or starts_with(h.channel, p_prefix))
        order by h.waiting desc, h.oldest limit p_limit)
    ),
    listed as (
        select coalesce(c.queue, h.queue) as queue, coalesce(c.name, h.channel) as channel,
            coalesce(h.waiting, 0)::bigint as waiting, coalesce(h.scheduled, 0)::bigint as scheduled,
            coalesce(h.leased, 0)::bigint as leased, coalesce(h.dead, 0)::bigint as dead,
            case when isfinite(h.oldest) then h.oldest end as oldest, k.complete as exact, c.concurrency, c.rate, c.burst,
            c.backlog, coalesce(c.weight, 1) as weight, coalesce(c.is_paused, false) as paused,
            coalesce(c.closing, false) as closing, case when c.is_paused then c.paused_until end as paused_until,
            coalesce(c.is_paused and c.throttled, false) as throttled,
            waits_for_v1(h.queue, c.is_paused, c.throttled, c.closing, c.concurrency, h.leased::bigint, c.rate, h.turn, v_now) as waits_for
        from chosen h
        left join lateral (
            select j.*, j.paused and coalesce(j.paused_until > v_now, true) as is_paused
            from channel j where j.id = h.channel_id) c on true
        cross join cut k
        union all
        select c.queue, c.name, 0, 0, 0, 0, null, true, c.concurrency, c.rate, c.burst, c.backlog, c.weight, x.paused,
            c.closing, case when x.paused then c.paused_until end, x.paused and c.throttled,
            waits_for_v1(c.queue, x.paused, c.throttled, c.closing, c.concurrency, 0, null, null, v_now)
        from channel c
        cross join lateral (select c.paused and coalesce(c.paused_until > v_now, true) as paused) x
        cross join cut k
        where (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null or c.paused
                or c.closing)
            and c.queue = any(v_queues) and k.complete
            and not exists (select from chosen h where h.channel_id = c.id)
    ),
    page as (
        select l.* from listed l
        where (p_prefix is null or starts_with(l.channel, p_prefix))
            and (p_paused is null or l.paused = p_paused)
            and (p_limited is null or p_limited = (l.weight <> 1 or l.concurrency is not null or l.rate is not null
                or l.backlog is not null or l.paused or l.closing))
            and (p_seen is null or (-l.waiting, l.queue, l.channel) > (-p_seen, p_seen_queue, p_seen_channel))
        order by l.waiting desc, l.queue, l.channel limit p_limit + 1
    )
    select k.complete, k.looked::bigint, p.* from cut k left join page p on true
    order by p.waiting desc, p.queue, p.channel;
end
$$;
