-- Part of claim: what claim_serve_v1 does, in queues that are claimed by kind (claim_visit_kinds_v1).
--
-- p_lanes: the lanes that the claim takes from, and '-'; null: all. p_move: there may be messages that are not
-- found by their kinds yet.
create or replace function "laneway".claim_serve_kinds_v1(
    p_lanes text[], p_move boolean, p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_unread boolean,
    p_wake_from timestamptz, p_rounds double precision, p_limit integer, p_lease interval, p_worker text,
    p_quantum integer, p_listeners boolean, p_now timestamptz, p_pace jsonb default null, p_all boolean default false
) returns setof "laneway".claimed_v1
language plpgsql
as $$
declare
    v_wakes tid[] := p_wakes;
    v_fence bigint;
    v_rows "laneway".message[];
begin
    if p_unread then
        v_wakes := v_wakes || array(
            select w.tid from unnest(p_owned) o cross join lateral (
                select k.ctid as tid from wake k
                where k.channel_id = o and (k.priority > 0 or k.due < k.at) and k.at >= p_wake_from and k.at <= p_now
                    and (p_lanes is null or k.lane = any(p_lanes))
                offset 0) w);
    end if;
    select s.fence, s.rows into v_fence, v_rows
    from claim_visit_kinds_v1(
        p_lanes, p_move or p_unread, p_channels, p_last, p_owned, p_rows, v_wakes, p_limit, p_lease, p_worker, p_quantum, p_rounds, p_now,
        p_pace, p_all) s;
    return query
    select m.id, v_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        date_part('epoch', m.due), date_part('epoch', m.published_at),
        date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
        substr(m.key, 17), m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean, null::bigint
    from unnest(v_rows) m;
    if p_listeners and v_rows is not null then
        perform add_events_v1(array['claimed'], array(select m.id from unnest(v_rows) m), p_now);
    end if;
end
$$;

-- Part of claim: the next p_quota messages of a channel, of some lanes (null: all), in the order in which
-- they start: see claim_pick_v1. which: the number of the position (lane and priority) that each was found
-- after. seen: how many were found after each position, at most p_quota + 1; null: it was not looked at.
create or replace function "laneway".claim_pick_kinds_v1(
    p_channel_id uuid, p_of text[], p_pri smallint[], p_due timestamptz[], p_mid bigint[], p_lanes text[],
    p_quota bigint, p_skips bigint, p_now timestamptz,
    out ids bigint[], out rows "laneway".message[], out dues timestamptz[], out which integer[], out seen bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with found as materialized (
        select m.*, h.number::integer as number, h.priority
        from unnest(p_of, p_pri, p_due, p_mid) with ordinality h(lane, priority, due, mid, number)
        cross join lateral (
            select k.message, k.id, k.due
            from startable_kind_v1(p_channel_id, substr(h.lane, 2), h.priority, h.due, h.mid, p_now) k
            order by k.due, k.id limit p_quota + 1
        ) m
        where h.lane <> '-' and (p_lanes is null or h.lane = any(p_lanes))
    ),
    picked as (
        select m.id, m.message, m.due, m.number
        from (
            select f.*, row_number() over (order by f.due, f.id) > (p_skips + p_quota) / 10 as young from found f
        ) m
        order by m.young, m.priority desc, m.due, m.id limit p_quota
    )
    select array_agg(p.id), array_agg(p.message), array_agg(p.due), array_agg(p.number),
        array(
            select case when h.lane = '-' or not (p_lanes is null or h.lane = any(p_lanes)) then null
                else (select count(*) from found f where f.number = h.number) end
            from unnest(p_of) with ordinality h(lane, number) order by h.number)
    into ids, rows, dues, which, seen
    from picked p;
end
$$;

-- Part of claim: what claim_visit_v1 does, in queues that are claimed by kind.
--
-- Keeps: what claim_visit_v1 keeps, but a visit may take a message whose wake is still to be read: of which
-- kinds the counted messages are is not known. The count is then too low until that wake is read; a known
-- position is never wrong. Positions are by lane and priority, and one that has nothing left is dropped.
-- A channel that starts one message at a time keeps its order over all kinds: its next message decides who
-- may serve it (claim_head_v1).
--
-- p_lanes: the lanes that the claim takes from, and '-'; null: all. p_move: there may be messages that are not
-- found by their kinds yet (claim_move_v1); where only a token tells, it changes nothing and begins again.
-- Answers the fence and the messages. The others are those of claim_visit_v1.
create or replace function "laneway".claim_visit_kinds_v1(
    p_lanes text[], p_move boolean, p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_limit integer,
    p_lease interval, p_worker text, p_quantum integer, p_rounds double precision, p_now timestamptz,
    p_pace jsonb default null, p_all boolean default false, out fence bigint, out rows "laneway".message[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
    -- One channel has all the work: it fills the batch.
    v_sole boolean := cardinality(p_channels) = 1 and p_rounds > 1;
    v_fence bigint := nextval('fence');
    -- Whether messages must be moved first (claim_move_v1), were moved, and the positions of these.
    v_move boolean := p_move;
    v_moved boolean := false;
    v_channels uuid[];
    v_lanes text[];
    v_pri smallint[];
    v_due timestamptz[];
    v_mid bigint[];
begin
    fence := v_fence;
    loop
        if v_move then
            select m.channels, m.lanes, m.pri, m.due, m.mid into v_channels, v_lanes, v_pri, v_due, v_mid
            from claim_move_v1(p_owned, p_wakes, p_now) m;
            v_moved := true;
        end if;
        with
        known as materialized (
            select o.id as channel_id, o.tid as row, t.*,
                coalesce(t.pri <> '{}' and (t.lanes is null or '-' = any(t.lanes)), false) as unmoved,
                (select row(array_agg(p.lane), array_agg(p.pri), array_agg(p.due), array_agg(p.mid))::"laneway".lanes_v1
                from unnest(t.lanes, t.pri, t.due, t.mid) p(lane, pri, due, mid) where p.lane like '=%') as positions
            from unnest(p_owned, p_rows) o(id, tid) left join lateral token_of_v1(o.id) t on true
        ),
        consumed as (
            delete from wake w where w.ctid = any(p_wakes) and (w.channel_id in (select o from unnest(p_owned) o)) is true
                and (v_moved or not (select bool_or(k.unmoved) from known k))
            returning w.channel_id, w.lane, w.priority, w.due, w.message_id, w.n, w.freed
        ),
        -- What the wakes say of each channel: how many more, how many freed, and a position in each lane and
        -- priority before which none of their messages lies.
        gain as materialized (
            select c.channel_id, sum(c.n)::bigint as n, sum(c.freed)::bigint as freed,
                sum(c.took)::bigint as took, sum(c.ended)::bigint as ended,
                row(array_agg(c.lane) filter (where c.mid is not null), array_agg(c.priority) filter (where c.mid is not null),
                    array_agg(c.due) filter (where c.mid is not null),
                    array_agg(c.mid) filter (where c.mid is not null))::"laneway".lanes_v1 as positions
            from (
                select c.channel_id, c.lane, c.priority, sum(c.n)::bigint as n, sum(c.freed)::bigint as freed,
                    -sum(c.message_id) filter (where c.freed > 0) as took,
                    sum(c.freed) filter (where c.freed > 0 and c.message_id < 0) as ended,
                    min(c.due) filter (where c.n > 0 and c.lane like '=%') as due,
                    min(c.message_id - 1) filter (where c.n > 0 and c.lane like '=%') as mid
                from consumed c group by c.channel_id, c.lane, c.priority
            ) c
            group by c.channel_id
        ),
        moved as materialized (
            select m.channel_id,
                row(array_agg(m.lane), array_agg(m.pri), array_agg(m.due), array_agg(m.mid))::"laneway".lanes_v1 as positions
            from unnest(v_channels, v_lanes, v_pri, v_due, v_mid) m(channel_id, lane, pri, due, mid)
            group by m.channel_id
        ),
        -- The channel, its policy and what its token remembers.
        visit as materialized (
            select v.*, coalesce(v.own_turn > p_last and v.own_turn <= p_now, false) as early,
                coalesce(v.concurrency = 1, false) and p_lanes is not null as strict,
                exists (select from unnest((v.positions).lanes) p(lane)
                    where p.lane <> '-' and (p_lanes is null or p.lane = any(p_lanes))) as wanted
            from (
                select
                    t.channel_id, p.ordinal, c.queue, c.concurrency, c.rate, c.burst, c.paused,
                    t.tid, coalesce(t.version, 0) as version, t.turn, t.slots, t.turns,
                    lane_turn_v1(t.slots, t.turns, p_lanes) as own_turn,
                    coalesce(t.n, 0) as known, coalesce(t.n, 0) + coalesce(g.n, 0) as n,
                    coalesce(t.leased, 0) as held, coalesce(t.leased, 0) - coalesce(g.freed, 0) as leased,
                    coalesce(cardinality(t.pri), 0) as had,
                    coalesce(t.skips, 0) as skips,
                    greatest(coalesce(t.tat, p_now), p_now) as tat,
                    -- Its share of the first round (a visit that the batch's end cut short goes on) and of each
                    -- further one.
                    coalesce(t.credit, 0) as saved,
                    case when v_sole then p_limit
                        when coalesce(t.credit, 0) >= 1 then t.credit
                        else coalesce(t.credit, 0) + p_quantum * c.weight end as by_starts,
                    case when f.reached is null then p_quantum * c.weight else 0 end as quantum,
                    f.reached, f.ahead, g.channel_id is not null as gained, c.weight, x.used, x.cost, x.each, x.booked,
                    case when x.cost = 0 and coalesce(t.leased, 0) > coalesce(g.freed, 0) then t.since else p_now end as since,
                    -- After which position to look in each lane and priority: the lowest that is named.
                    case when g.positions is null and m.positions is null then t.positions
                        else lowest_lanes_v1(lowest_lanes_v1(t.positions, g.positions), m.positions) end as positions
                from known t
                cross join lateral (
                    select k.queue, k.weight, k.concurrency, k.rate, k.burst,
                        k.paused and coalesce(k.paused_until > p_now, true) as paused
                    from channel k where k.ctid = t.row offset 0
                ) c
                join unnest(p_channels) with ordinality p(id, ordinal) on p.id = t.channel_id
                left join gain g on g.channel_id = t.channel_id
                left join moved m on m.channel_id = t.channel_id
                left join lateral (
                    select (p_pace -> c.queue ->> 0)::double precision as reached, (p_pace -> c.queue ->> 1)::double precision as ahead,
                        to_timestamp((p_pace -> c.queue ->> 2)::double precision) as start
                    where p_pace ? c.queue
                ) f on true
                left join lateral (
                    select a.* from pace_v1(f.reached, f.ahead, c.weight, coalesce(t.leased, 0) - coalesce(g.freed, 0), case when t.since >= f.start then t.used end, t.cost, t.since,
                        g.took, g.ended, coalesce(t.turn is null and t.n = 0 and t.leased = 0, true), p_now) a
                    where f.reached is not null
                ) x on true
                where v_moved or not (select bool_or(k.unmoved) from known k)
            ) v
        ),
        -- As in claim_visit_v1.
        further as materialized (
            select coalesce(min(x.scale) filter (where x.n >= p_limit), max(x.scale), 1) as scale
            from (
                select s.scale, sum(least(greatest(l.n, 1), l.concurrency - l.leased, starts_v1(l.reached, l.ahead * s.scale, l.weight, l.cost, l.each, l.booked))) as n
                from visit l cross join (select power(2::double precision, k / 4.0::double precision) as scale from generate_series(0, case when p_all then 100 else -1 end) k) s
                where l.reached is not null and not l.paused and l.wanted group by s.scale
            ) x
        ),
        room as materialized (
            select l.*, least(l.room, p_limit) as quota
            from (
                select l.*, h.id as head, h.message as head_message, h.due as head_due, h.lane as head_lane,
                    case when l.paused or l.early then 0
                        when l.strict and not coalesce(h.lane = any(p_lanes), false) then 0
                        when not l.strict and not l.wanted then 0
                        else greatest(0, floor(least(
                            l.first + (p_rounds - 1) * l.quantum, greatest(l.n, 1), l.concurrency - l.leased,
                            case when l.rate is not null then l.burst - date_part('epoch', l.tat - p_now) * l.rate + 1e-9 end)))
                    end::bigint as room
                from (
                    select l.*, case when l.reached is null then l.by_starts
                        else starts_v1(l.reached, l.ahead * f.scale, l.weight, l.cost, l.each, l.booked) end as first
                    from visit l cross join further f
                ) l left join lateral (
                    select k.* from claim_head_v1(l.channel_id, l.skips, p_now) k where l.strict and l.leased = 0 offset 0
                ) h on true
            ) l
        ),
        -- The messages of each channel, in the order in which they start.
        found as materialized (
            select r.*, m.ids, m.rows, m.dues, m.which, m.seen, coalesce(cardinality(m.ids), 0) as found
            from room r
            cross join lateral claim_pick_kinds_v1(r.channel_id, (r.positions).lanes, (r.positions).pri, (r.positions).due,
                (r.positions).mid, p_lanes, r.quota, r.skips, p_now) m
            where r.quota > 0 and not r.strict
            union all
            select r.*, array[r.head], array[r.head_message], array[r.head_due], null, null, 1 from room r
            where r.quota > 0 and r.strict
            union all
            select r.*, null, null, null, null, null, 0 from room r where r.quota = 0
        ),
        -- What it could start if the batch had no end: what the end cuts off stays as credit.
        stocked as materialized (
            select f.*, case when f.found < f.quota then f.found else f.room end as stock from found f
        ),
        -- How many whole rounds over all channels the batch has room for; one more is begun, in their order.
        whole as materialized (
            select coalesce(max(x.rounds), 0) as rounds
            from (
                select r.rounds from stocked f cross join generate_series(1, p_rounds::integer) r(rounds)
                group by r.rounds
                having sum(least(f.stock, floor(f.first + (r.rounds - 1) * f.quantum))) <= p_limit
            ) x
        ),
        share as materialized (
            select f.*, f.base + greatest(0, least(
                f.upto - f.base, p_limit - sum(f.base) over () - (sum(f.upto - f.base) over w - (f.upto - f.base)))) as taken
            from (
                select f.*, w.rounds,
                    case when w.rounds > 0 then least(f.stock, floor(f.first + (w.rounds - 1) * f.quantum)) else 0 end::integer as base,
                    least(f.stock, floor(f.first + w.rounds * f.quantum))::integer as upto
                from stocked f cross join whole w
            ) f
            window w as (order by f.ordinal rows unbounded preceding)
        ),
        picked as materialized (
            select unnest(h.ids[1 : h.taken]) as id, unnest(h.rows[1 : h.taken]) as message, h.channel_id,
                h.concurrency is not null or h.reached is not null as counted
            from (select s.* from share s where s.taken > 0 order by s.ordinal) h
        ),
        leased as (
            insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
            select p.id, v_fence, p_now + p_lease, p_now, p.channel_id, p.counted, p_worker from picked p
        ),
        next as (
            select s.channel_id, s.version, s.tid, s.queue, s.turn as old_turn, s.known, s.held, s.had, s.n - s.taken as n,
                s.leased + case when s.concurrency is null and s.reached is null then 0 else s.taken end as leased,
                -- Fair by time, and the batch was full before: its token stays as it is.
                s.reached is not null and s.taken = 0 and s.upto > 0 and not s.gained and not s.early as unreached,
                s.used, s.cost, s.since, s.used + (s.leased + s.taken) * s.each / s.weight as booked,
                s.next_tat as tat,
                case when s.reached is not null then 0
                    when s.early or (s.taken = 0 and s.upto > 0) then s.saved
                    when s.taken > s.base and s.taken < s.upto then s.first + s.rounds * s.quantum - s.taken
                    else s.first + s.ended * s.quantum - floor(s.first + s.ended * s.quantum)
                end as credit,
                case when (s.skips + s.quota) / 10 > 0 and s.taken > 0 then 0 else s.skips + s.taken end as skips,
                s.rate is not null or s.concurrency is not null as gated, s.left,
                case when s.paused or s.concurrency - s.leased <= s.taken then null else next_slots_v1(
                    case when s.strict and s.head_lane is not null then array[s.head_lane] else (s.left).lanes end,
                    p_lanes,
                    -- Its turn is yet to come; or cut short, or not reached in the last round.
                    s.early or s.taken < s.upto, s.slots, s.turns,
                    case when s.rate is not null and s.burst - date_part('epoch', s.next_tat - p_now) * s.rate + 1e-9 < 1 then
                        s.next_tat - floor((s.burst - 1) / s.rate * 1e6) * interval '1 microsecond' end,
                    p_now) end as ring
            from (
                select s.*,
                    -- Of the rounds after the first, how many are over for it. (The one that was begun last is no
                    -- round of its own if all that were planned are whole.)
                    case when s.taken < s.upto then s.rounds - 1 else least(s.rounds, p_rounds - 1) end as ended,
                    -- One at a time, and there is none: nothing is left of any kind.
                    case when s.strict and s.leased = 0 and s.head is null then null
                        else advanced_lanes_v1(s.positions, s.seen, s.which, s.dues, s.ids, s.taken) end as left,
                    -- Rounded up to the clock's step: rounding to the nearest would let the rate creep over.
                    case when s.rate is not null then
                        s.tat + ceil(s.taken / s.rate * 1e6 - 1e-3) * interval '1 microsecond' end as next_tat
                from share s
            ) s
        ),
        -- A channel that is at rest and was at rest needs no new version.
        changed as materialized (
            select n.*, (n.left).lanes is not null as more from next n
            where not n.unreached and ((n.left).lanes is not null or n.n <> 0 or n.leased <> 0 or n.gated
                or (n.tid is not null and (n.old_turn is not null or n.known <> 0 or n.held <> 0 or n.had <> 0)))
        ),
        dropped as (
            delete from token k where k.ctid = any(array(select c.tid from changed c where c.tid is not null))
        ),
        requeued as (
            insert into token (channel_id, version, turn, n, leased, tat, credit, skips, queue, pri, due, mid, lanes, slots, turns,
                used, booked, cost, since)
            select c.channel_id, c.version + 1, (select min(x) from unnest((c.ring).turns) x), c.n, c.leased, c.tat,
                case when c.more then c.credit else 0 end,
                case when c.more then c.skips else 0 end,
                c.queue,
                coalesce((c.left).pri, '{}'), coalesce((c.left).due, '{}'), coalesce((c.left).mid, '{}'),
                coalesce((c.left).lanes, '{}'), (c.ring).slots, (c.ring).turns,
                c.used, c.booked, c.cost, case when c.used is not null then c.since end
            from changed c
        )
        select array_agg(p.message), (select bool_or(k.unmoved) from known k) into rows, v_move from picked p;
        exit when v_moved or not coalesce(v_move, false);
    end loop;
end
$$;
