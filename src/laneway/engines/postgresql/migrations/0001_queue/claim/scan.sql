-- Part of claim: the transactions that were open at the first scan, and for each the floors from which
-- to scan when it has ended: those that the caller had for it, else the caller's own, else the left edge.
--
-- p_snapshot lists only those that are older than the newest one that has ended; p_newer is how many
-- numbers were given out after that one. The planner puts the body in place of the call.
create or replace function "laneway".claim_open_v1(
    p_snapshot pg_snapshot, p_newer bigint, p_turn_floor timestamptz, p_wake_floor timestamptz,
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[]
) returns table (xids bigint[], turns timestamptz[], wakes timestamptz[])
language sql stable
as $$
    select array_agg(x.xid), array_agg(coalesce(o.turn, p_turn_floor, 'epoch')),
        array_agg(coalesce(o.wake, p_wake_floor, 'epoch'))
    from (
        select i.xid::text::bigint from pg_snapshot_xip(p_snapshot) i(xid)
        union all
        select pg_snapshot_xmax(p_snapshot)::text::bigint + g from generate_series(0, p_newer - 1) g
    ) x(xid)
    left join unnest(p_open_xids, p_open_turns, p_open_wakes) o(xid, turn, wake) on o.xid = x.xid
$$;

-- Part of claim: from where to scan again, because of those transactions of the caller's list (open when
-- its floors were taken) that have ended since. Null if none has.
--
-- Which ones have ended is asked of the snapshot of the calling statement. The planner puts the body in
-- place of the call.
create or replace function "laneway".claim_rescan_v1(
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[]
) returns table (turn timestamptz, wake timestamptz)
language sql stable
as $$
    select min(o.turn), min(o.wake)
    from unnest(p_open_xids, p_open_turns, p_open_wakes) o(xid, turn, wake)
    where pg_visible_in_snapshot(o.xid::text::xid8, pg_current_snapshot())
$$;

-- Part of claim: take one of the sixteen parts of the channels, for a claim that runs beside others.
--
-- Keeps: a part is held by one claim until it commits; all wakes of a channel are in one part. Of the
-- parts with work it takes the one whose work is oldest and that no other claim holds. part is null: there is
-- none, or all work is in one part, so that there is nothing to divide. sole: the channel that has all of it.
--
-- Locks: the advisory lock of the queues, shared (a claim that scans all channels holds it alone), then
-- that of the part. Both are only tried, so nobody waits here.
--
-- p_limit: how many tokens and wakes of each queue to look at. p_tried: parts in which all channels were
-- locked by others. p_lock: the lock of the queues; the next sixteen numbers are those of the parts.
create or replace function "laneway".claim_part_v1(
    p_queues text[], p_turn_from timestamptz, p_wake_from timestamptz, p_limit integer, p_tried integer[],
    p_lock bigint, p_now timestamptz, out part integer, out sole uuid
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_part record;
begin
    perform pg_try_advisory_xact_lock_shared(p_lock);
    for v_part in
        select p.part, p.parts, case when p.parts = 1 and p.channels = 1 and p.read < p_limit then p.sole end as sole
        from (select e.part, min(e.at) as at, count(*) over () as parts, count(*) as read,
            count(distinct e.channel_id) as channels, (array_agg(e.channel_id))[1] as sole from (
            select t.channel_id, channel_part_v1(t.channel_id) as part, t.turn as at
            from unnest(p_queues) q(name) cross join lateral (
                select k.channel_id, k.turn from token k
                where k.queue = q.name and k.turn >= p_turn_from and k.turn <= p_now
                order by k.turn limit p_limit) t
            union all
            select w.channel_id, channel_part_v1(w.channel_id), w.at
            from unnest(p_queues) q(name) cross join lateral (
                select k.channel_id, k.at from wake k
                where k.queue = q.name and k.at >= p_wake_from and k.at <= p_now
                order by k.at limit p_limit) w
        ) e group by e.part) p
        where p.part <> all(p_tried) order by p.at
    loop
        if v_part.parts = 1 then
            sole := v_part.sole;
        elsif pg_try_advisory_xact_lock(p_lock + 1 + v_part.part) then
            part := v_part.part;
            exit;
        end if;
    end loop;
end
$$;

-- Part of claim: which channels come next, as many as may fill p_want places of the batch.
--
-- Keeps: the ring (tokens with a turn) and the wakes are merged by time, from the given floors to p_now.
-- A channel in the ring keeps its turn whatever its wakes say; a wake that was committed late (to the
-- left of the caller's floor, p_late_before) joins at the end, so that holding a transaction open gains
-- nothing. It reads and writes nothing else, and locks nothing.
--
-- Each statement has a snapshot of its own. A transaction of the caller's list may have ended just before
-- the scan, which then saw what came after it: it is asked after the scan, and if so the scan repeats.
--
-- p_part: only the channels of this part; if it has none, all. p_first: the first pass of a claim.
-- p_further: earlier passes brought nothing; the ring is to fill the batch beside the wakes, because
-- these may all be of channels that can start nothing.
-- Answers the type scan_v1 (tables.sql).
create or replace function "laneway".claim_scan_v1(
    p_queues text[], p_want integer, p_quantum integer, p_part integer, p_first boolean, p_further boolean,
    p_turn_from timestamptz, p_wake_from timestamptz, p_late_before timestamptz,
    p_open_xids bigint[], p_open_turns timestamptz[], p_open_wakes timestamptz[], p_now timestamptz
) returns "laneway".scan_v1
language plpgsql
as $$
#variable_conflict use_column
declare
    v_found "laneway".scan_v1;
    v_part integer := p_part;
    v_turn_from timestamptz := p_turn_from;
    v_wake_from timestamptz := p_wake_from;
    v_channels uuid[];
    v_yield bigint;
    v_parts integer := case when p_part is null then 1 else 16 end;
    -- How many wakes to read, how many were read, and of how many channels, now and before.
    v_span integer := p_want + 10;
    v_read integer;
    v_met bigint;
    v_met_before bigint;
    v_far boolean := p_part is not null or p_first and random() < 0.125;
    v_repeat boolean;
begin
    -- So few wakes do not show which channels hide behind others. So every eighth claim reads eight times as
    -- many, every eighth of these eight times as many again, and so on; and consumes all that it finds.
    if v_far and p_part is null then
        v_span := greatest(v_span, least(v_span * 8 ^ floor(1 - ln(1 - random()) / ln(8)), 20000));
    end if;
    -- Nobody has news, as while a backlog is drained: then the ring alone says who is next.
    if p_part is null and not exists (
        select from wake k where k.queue = any(p_queues) and k.at >= v_wake_from and k.at <= p_now
    ) then
        select array_agg(r.channel_id) filter (where r.before < p_want), array_agg(r.n) filter (where r.before < p_want),
            sum(r.n) filter (where r.before < p_want), sum(r.supply) filter (where r.before < p_want),
            max(r.turn) filter (where r.before < p_want), coalesce(min(r.turn), p_now), count(*) >= p_want
        into v_found.channels, v_found.waiting, v_found.total, v_found.yield, v_found.last, v_found.turn_floor, v_found.ring_cut
        from (
            select r.channel_id, r.turn, r.n, r.supply,
                sum(r.supply) over (order by r.turn, r.weight desc, r.channel_id rows unbounded preceding) - r.supply as before
            from (
                select t.channel_id, t.turn, t.n, coalesce(k.weight, 1) as weight,
                    case when k.paused then 0 else floor(greatest(0, least(
                        t.n, case when t.credit >= 1 then t.credit else greatest(1, p_quantum * coalesce(k.weight, 1)) end,
                        k.concurrency::double precision - t.leased,
                        k.burst - date_part('epoch', greatest(t.tat, p_now) - p_now) * k.rate + 1e-9))) end::integer as supply
                from unnest(p_queues) q(name) cross join lateral (
                    select k.channel_id, k.turn, k.n, k.leased, k.credit, k.tat
                    from token k where k.queue = q.name and k.turn >= v_turn_from and k.turn <= p_now
                    order by k.turn limit p_want) t
                left join lateral (
                    select k.weight, k.concurrency, k.rate, k.burst,
                        k.paused and coalesce(k.paused_until > p_now, true) as paused
                    from channel k where k.id = t.channel_id
                        and (k.weight <> 1 or k.concurrency is not null or k.rate is not null or k.paused)
                    offset 0
                ) k on true offset 0
            ) r
        ) r;
        if cardinality(p_open_xids) > 0 then
            select o.turn < v_turn_from or o.wake < v_wake_from into v_repeat
            from claim_rescan_v1(p_open_xids, p_open_turns, p_open_wakes) o;
        end if;
        if v_repeat is not true then
            v_found.plain := true;
            v_found.wake_floor := p_now;
            v_found.unread := false;
            v_found.turn_from := v_turn_from;
            v_found.wake_from := v_wake_from;
            return v_found;
        end if;
    end if;
    loop
        with ring as materialized (
            select t.channel_id, t.turn, t.n, t.leased, t.credit, t.tat
            from unnest(p_queues) q(name) cross join lateral (
                select r.channel_id, r.turn, r.n, r.leased, r.credit, r.tat from (
                    select k.channel_id, k.turn, k.n, k.leased, k.credit, k.tat
                    from token k
                    where k.queue = q.name and k.turn >= v_turn_from and k.turn <= p_now
                    order by k.turn limit p_want * v_parts) r
                where v_part is null or channel_part_v1(r.channel_id) = v_part
                order by r.turn limit p_want) t
        ),
        woken as materialized (
            select w.tid, w.channel_id, w.at, w.n, w.freed, w.plain
            from unnest(p_queues) q(name) cross join lateral (
                select r.tid, r.channel_id, r.at, r.n, r.freed, r.plain from (
                    select k.ctid as tid, k.channel_id, k.at, k.n, k.freed, k.priority = 0 and k.n > 0 and k.freed = 0 and k.lane <> '-' as plain
                    from wake k
                    where k.queue = q.name and k.at >= v_wake_from and k.at <= p_now
                    order by k.at limit v_span * v_parts) r
                where v_part is null or channel_part_v1(r.channel_id) = v_part
                order by r.at limit v_span) w
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
                    select l.channel_id, l.ringed, l.woken, l.crowded, l.position, l.n + coalesce(f.n, 0) as n,
                        case when not l.ringed and (select count(*) from ring) >= p_want then (
                        select case when t.turn <= p_now then t.turn end from latest_token_v1(l.channel_id) t
                        ) end as later,
                        coalesce(k.weight, 1) as weight,
                        -- What a visit can start, as far as one can tell from here.
                        case when k.paused then 0 else floor(greatest(0, least(
                            l.n + coalesce(f.n, 0),
                            case when l.credit >= 1 then l.credit else greatest(1, p_quantum * coalesce(k.weight, 1)) end,
                            k.concurrency::double precision + l.freed - coalesce(f.leased, 0),
                            k.burst - date_part('epoch', greatest(l.tat, p_now) - p_now) * k.rate + 1e-9))) end::integer as supply
                    from merged l
                    -- A channel that was full and has a slot again: its wakes do not tell how many wait. Taken for none, all such
                    -- channels would be visited by one claim.
                    left join lateral (
                        select t.n, t.leased from latest_token_v1(l.channel_id) t where not l.ringed and l.freed > 0 and t.turn is null
                        offset 0
                    ) f on true
                    left join lateral (
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
        if v_part is not null then
            exit when v_channels is not null;
            v_part := null;
            v_parts := 1;
        else
            -- Many wakes of few channels: read on, or those behind them would wait for them. Unless ten times as
            -- many met many more channels: then none hides another.
            exit when v_read < v_span or v_span > 20000
                or v_yield >= p_want and (v_read <= 2 * v_met or v_met >= 5 * v_met_before);
            v_met_before := v_met;
            v_span := v_span * 10;
        end if;
    end loop;
    v_found.channels := v_channels;
    v_found.yield := v_yield;
    v_found.part := v_part;
    v_found.turn_from := v_turn_from;
    v_found.wake_from := v_wake_from;
    v_found.unread := v_part is not null or v_read >= v_span;
    if v_part is not null then
        -- The live part of the tables begins where it does for all.
        select coalesce(min(t.turn), p_now), coalesce(min(w.at), p_now) into v_found.turn_floor, v_found.wake_floor
        from unnest(p_queues) q(name)
        left join lateral (
            select k.turn from token k where k.queue = q.name and k.turn >= v_turn_from and k.turn <= p_now
            order by k.turn limit 1) t on true
        left join lateral (
            select k.at from wake k where k.queue = q.name and k.at >= v_wake_from and k.at <= p_now
            order by k.at limit 1) w on true;
    end if;
    return v_found;
end
$$;
