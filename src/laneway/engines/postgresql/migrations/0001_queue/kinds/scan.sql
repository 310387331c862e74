-- Part of claim: what claim_scan_v1 does, for a claim of some kinds: channels that have work in these lanes.
-- What others wait for is not read: every lane has its own part of the ring and of the wakes.
--
-- p_lanes: the kinds, and '-': wakes that concern all. The other parameters are those of claim_scan_v1.
-- Answers the type scan_v1 (tables.sql).
create or replace function "laneway".claim_scan_kinds_v1(
    p_queues text[], p_lanes text[], p_want integer, p_quantum integer, p_first boolean, p_further boolean,
    p_turn_from timestamptz, p_wake_from timestamptz, p_late_before timestamptz,
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[], p_now timestamptz
) returns "laneway".scan_v1
language plpgsql
as $$
#variable_conflict use_column
declare
    v_found "laneway".scan_v1;
    v_turn_from timestamptz := p_turn_from;
    v_wake_from timestamptz := p_wake_from;
    v_channels uuid[];
    v_yield bigint;
    -- How many wakes to read, how many were read, and of how many channels, now and before.
    v_span integer := p_want + 10;
    v_read integer;
    v_met bigint;
    v_met_before bigint;
    v_far boolean := p_first and random() < 0.125;
    v_repeat boolean;
begin
    -- So few wakes do not show which channels hide behind others. So every eighth claim reads eight times as
    -- many, every eighth of these eight times as many again, and so on; and consumes all that it finds.
    if v_far then
        v_span := greatest(v_span, least(v_span * 8 ^ floor(1 - ln(1 - random()) / ln(8)), 20000));
    end if;
    loop
        with ring as materialized (
            select distinct t.channel_id, min(t.turn) over (partition by t.channel_id) as turn, t.n, t.leased, t.credit, t.tat
            from unnest(p_queues) q(name) cross join unnest(p_lanes || '*'::text) l(lane) cross join lateral (
                (select k.channel_id, k.turns[1] as turn, k.n, k.leased, k.credit, k.tat
                from token k
                where l.lane <> '*' and k.queue = q.name and k.slots[1] = l.lane and k.turns[1] >= v_turn_from and k.turns[1] <= p_now
                order by k.turns[1] limit p_want)
                union all
                (select k.channel_id, k.turns[2] as turn, k.n, k.leased, k.credit, k.tat
                from token k
                where l.lane not in ('-', '*') and k.queue = q.name and k.slots[2] = l.lane and k.turns[2] >= v_turn_from and k.turns[2] <= p_now
                order by k.turns[2] limit p_want)
                union all
                (select k.channel_id, k.turns[3] as turn, k.n, k.leased, k.credit, k.tat
                from token k
                where l.lane not in ('-', '*') and k.queue = q.name and k.slots[3] = l.lane and k.turns[3] >= v_turn_from and k.turns[3] <= p_now
                order by k.turns[3] limit p_want)
                union all
                (select k.channel_id, k.turns[4] as turn, k.n, k.leased, k.credit, k.tat
                from token k
                where l.lane <> '-' and k.queue = q.name and k.slots[4] = l.lane and k.turns[4] >= v_turn_from and k.turns[4] <= p_now
                    and (l.lane <> '*' or k.lanes && p_lanes)
                order by k.turns[4] limit p_want)
            ) t
        ),
        woken as materialized (
            select w.tid, w.channel_id, w.at, w.n, w.freed, w.plain
            from unnest(p_queues) q(name) cross join unnest(p_lanes) l(lane) cross join lateral (
                select k.ctid as tid, k.channel_id, k.at, k.n, k.freed, k.priority = 0 and k.n > 0 and k.freed = 0 and k.lane <> '-' as plain
                from wake k
                where k.queue = q.name and k.lane = l.lane and k.lane <> '' and k.at >= v_wake_from and k.at <= p_now
                order by k.at limit v_span) w
        ),
        merged as (
            select e.channel_id, sum(e.n)::bigint as n, count(e.turn) > 0 as ringed,
                count(e.at) > 0 as woken, count(e.at) > p_quantum as crowded,
                coalesce(min(e.turn), min(case when e.at < p_late_before then p_now else e.at end)) as position,
                sum(e.freed)::bigint as freed, max(e.credit) as credit, max(e.tat) as tat
            from (
                select r.channel_id, r.turn, null::timestamptz as at, r.n, -r.leased as freed, r.credit, r.tat from ring r
                union all
                select w.channel_id, null, w.at, w.n, w.freed, null, null from woken w
            ) e
            group by e.channel_id
        ),
        queued as materialized (
            -- Channels whose visits ended in the same claim have the same position: the heavier ones were served first.
            select q.*, sum(q.supply) over (partition by p_further and q.ringed
                order by q.position, q.weight desc, q.channel_id rows unbounded preceding) - q.supply as before
            from (
                select l.channel_id, l.ringed, l.woken, l.crowded, l.weight, l.later, coalesce(l.later, l.position) as position,
                    case when l.later is null then l.n else 0 end as n,
                    case when l.later is null then l.supply else 0 end as supply
                from (
                    -- later: the turn of a channel in the ring, behind all that was read of it. Its wakes are only
                    -- counted.
                    select l.*, case when not l.ringed and (select count(*) from ring) >= p_want then (
                        select case when x.turn <= p_now then x.turn end
                        from token_of_v1(l.channel_id) t cross join lane_turn_v1(t.slots, t.turns, p_lanes) x(turn)
                        ) end as later,
                        coalesce(k.weight, 1) as weight,
                        -- What a visit can start, as far as one can tell from here.
                        case when k.paused then 0 else floor(greatest(0, least(
                            l.n, case when l.credit >= 1 then l.credit else greatest(1, p_quantum * coalesce(k.weight, 1)) end,
                            k.concurrency::double precision + l.freed,
                            k.burst - date_part('epoch', greatest(l.tat, p_now) - p_now) * k.rate + 1e-9))) end::integer as supply
                    from merged l left join lateral (
                        select k.weight, k.concurrency, k.rate, k.burst,
                            k.paused and coalesce(k.paused_until > p_now, true) as paused
                        from channel k where k.id = l.channel_id
                            and (k.weight <> 1 or k.concurrency is not null or k.rate is not null or k.paused)
                        offset 0
                    ) k on true offset 0
                ) l
            ) q
        )
        select c.channels, c.waiting, c.new, c.total, c.yield,
            w.tids, w.read, w.plain, coalesce((select min(r.turn) from ring r), p_now), coalesce(w.first, p_now),
            (select count(*) from queued q where q.woken),
            (select max(q.position) from queued q where q.later is null and q.before < p_want),
            (select count(*) from ring) >= p_want
        into v_channels, v_found.waiting, v_found.new, v_found.total, v_yield,
            v_found.wakes, v_read, v_found.plain, v_found.turn_floor, v_found.wake_floor,
            v_met, v_found.last, v_found.ring_cut
        from (
            select array_agg(q.channel_id) as channels, array_agg(q.n) as waiting,
                array_agg(q.channel_id) filter (
                    where not exists (select from channel k where k.id = q.channel_id offset 0)) as new,
                sum(q.n) as total, sum(q.supply) as yield
            -- As many as fill the batch; and all of which many wakes were read: counted in one token, these no
            -- longer hide others.
            from (
                select q.* from queued q where q.crowded or case when q.later is null then q.before < p_want else v_far end
                order by q.position, q.weight desc, q.channel_id limit p_want + 1000
            ) q
        ) c
        cross join (
            select array_agg(w.tid) as tids, count(*) as read, coalesce(bool_and(w.plain), true) as plain, min(w.at) as first
            from woken w
        ) w;

        if cardinality(p_open_xids) > 0 then
            select o.turn < v_turn_from or o.wake < v_wake_from,
                least(v_turn_from, o.turn), least(v_wake_from, o.wake)
            into v_repeat, v_turn_from, v_wake_from
            from claim_rescan_v1(p_open_xids, p_open_turns, p_open_wakes) o;
            continue when v_repeat;
        end if;
        -- Many wakes of few channels: read on, or those behind them would wait for them. Unless ten times as
        -- many met many more channels: then none hides another.
        exit when v_read < v_span or v_span > 20000
            or v_yield >= p_want and (v_read <= 2 * v_met or v_met >= 5 * v_met_before);
        v_met_before := v_met;
        v_span := v_span * 10;
    end loop;
    v_found.channels := v_channels;
    v_found.yield := v_yield;
    v_found.turn_from := v_turn_from;
    v_found.wake_from := v_wake_from;
    v_found.unread := v_read >= v_span;
    return v_found;
end
$$;

-- Part of claim: the next message of a channel of any kind, and its lane, for a channel that starts one
-- message at a time. Reads the messages themselves: wakes of other kinds have not been read.
create or replace function "laneway".claim_head_v1(
    p_channel_id uuid, p_skips bigint, p_now timestamptz,
    out id bigint, out message "laneway".message, out due timestamptz, out priority smallint, out lane text
)
language sql stable
as $$
    -- Of the many that a channel may have, the priorities that it has: from one to the next lower one.
    with recursive p(priority) as (
        (select k.priority from "laneway".message k where k.channel_id = p_channel_id order by k.priority desc limit 1)
        union all
        select (
            select k.priority from "laneway".message k where k.channel_id = p_channel_id and k.priority < p.priority
            order by k.priority desc limit 1)
        from p where p.priority is not null
    )
    select m.id, m.message, m.due, m.priority, m.lane
    from (
        select m.*, p.priority,
            row_number() over (order by m.due, m.id) > (p_skips + 1) / 10 as young
        from p
        cross join lateral (
            select k as message, k.id, k.due, '=' || k.kind as lane
            from "laneway".message k
            where k.channel_id = p_channel_id and k.priority = p.priority and k.due <= p_now
                and (k.expires_at is null or k.expires_at > p_now)
                and (k.part is null or k.part not in (select p.id from "laneway".staged_part p))
                and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
            order by k.due, k.id limit 1
        ) m
    ) m
    order by m.young, m.priority desc, m.due, m.id limit 1
$$;

-- Part of claim: when something of these lanes may start next.
create or replace function "laneway".claim_next_kinds_v1(p_queues text[], p_lanes text[], p_now timestamptz)
returns timestamptz
language sql stable
as $$
    select min(least(
        (select k.turns[1] from "laneway".token k
        where l.lane <> '*' and k.queue = q.name and k.slots[1] = l.lane and k.turns[1] > p_now order by k.turns[1] limit 1),
        (select k.turns[2] from "laneway".token k
        where l.lane not in ('-', '*') and k.queue = q.name and k.slots[2] = l.lane and k.turns[2] > p_now order by k.turns[2] limit 1),
        (select k.turns[3] from "laneway".token k
        where l.lane not in ('-', '*') and k.queue = q.name and k.slots[3] = l.lane and k.turns[3] > p_now order by k.turns[3] limit 1),
        (select k.turns[4] from "laneway".token k
        where l.lane <> '-' and k.queue = q.name and k.slots[4] = l.lane and k.turns[4] > p_now
            and (l.lane <> '*' or k.lanes && p_lanes) order by k.turns[4] limit 1),
        (select w.at from "laneway".wake w
        where w.queue = q.name and w.lane = l.lane and w.lane <> '' and w.at > p_now order by w.at limit 1)))
    from unnest(p_queues) q(name) cross join unnest(p_lanes || '*'::text) l(lane)
$$;

-- Part of claim: whether messages of these lanes wait for a limit or a pause ('blocked'), or none is there
-- ('empty'), as far as a hundred channels tell that wait for a wake.
create or replace function "laneway".claim_blocked_kinds_v1(p_queues text[], p_lanes text[], p_now timestamptz)
returns text
language sql stable
as $$
    select case when exists (
        select from unnest(p_queues) q(name) cross join lateral (
            select k.lanes from "laneway".token k where k.queue = q.name and k.turn is null and k.n > 0 limit 100) t
        where t.lanes && p_lanes
    ) or exists (
        select from unnest(p_queues) q(name) cross join lateral (
            select k.lanes from "laneway".token k where k.queue = q.name and k.turn > p_now order by k.turn limit 100) t
        where t.lanes && p_lanes
    ) then 'blocked' else 'empty' end
$$;
