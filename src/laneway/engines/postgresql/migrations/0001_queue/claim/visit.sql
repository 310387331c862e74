-- Part of claim: visit the channels whose rows the caller has locked: consume their wakes and tokens,
-- lease messages, write new tokens.
--
-- Keeps: what it consumes (wakes, tokens) it also looks at, in the same statement, and what is
-- left it appends again to the right. The sum of n over a channel's token and wakes is the number
-- of its waiting messages, and its token's `leased` less the wakes' `freed` the number of its
-- counted leases. A visit takes no more than n: a message whose wake is still to be read is left
-- to that wake, so that counts and messages stay in step.
--
-- p_channels: the channels in serving order. p_last: the position of the last one that is to be served;
-- of those with a later turn the wakes are only counted.
-- p_owned/p_rows: those of them that are locked, with the address of their row.
-- p_wakes: addresses of wakes that were read; those of other channels are left alone.
-- p_starts: of each that is in a queue that is fair by time, how many messages it may start (claim_pace_v1); else null. What
-- it is charged is written afterwards (claim_charge_v1).
-- Answers the fence of this visit, the leased messages and their row addresses.
create or replace function "laneway".claim_visit_v1(
    p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_limit integer,
    p_lease interval, p_worker text, p_quantum integer, p_rounds double precision, p_now timestamptz,
    p_starts double precision[] default null,
    out fence bigint, out ids bigint[], out tids tid[]
)
language plpgsql
as $$
#variable_conflict use_column
declare
    -- One channel has all the work: it fills the batch.
    v_sole boolean := cardinality(p_channels) = 1 and p_rounds > 1;
    v_fence bigint := nextval('fence');
begin
    fence := v_fence;
    with
    consumed as (
        delete from wake w where w.ctid = any(p_wakes) and (w.channel_id in (select o from unnest(p_owned) o)) is true
        returning w.channel_id, w.priority, w.due, w.message_id, w.n, w.freed
    ),
    -- What the wakes say of each channel: how many more, how many freed, and a position in each priority
    -- before which none of their messages lies.
    gain as materialized (
        select c.channel_id, sum(c.n)::bigint as n, sum(c.freed)::bigint as freed, bool_or(c.fewer) as fewer,
            array_agg(c.priority) filter (where c.mid is not null) as pri,
            array_agg(c.due) filter (where c.mid is not null) as due,
            array_agg(c.mid) filter (where c.mid is not null) as mid
        from (
            select c.channel_id, c.priority, sum(c.n)::bigint as n, sum(c.freed)::bigint as freed, bool_or(c.n < 0) as fewer,
                min(c.due) filter (where c.n > 0) as due,
                min(c.message_id - 1) filter (where c.n > 0) as mid
            from consumed c group by c.channel_id, c.priority
        ) c
        group by c.channel_id
    ),
    -- The channel, its policy and what its token remembers.
    visit as (
        select
            o.id as channel_id, p.ordinal, c.queue, c.concurrency, c.rate, c.burst, c.paused,
            t.tid, coalesce(t.version, 0) as version, t.turn,
            coalesce(t.n, 0) as known, coalesce(t.n, 0) + coalesce(g.n, 0) as n,
            coalesce(t.leased, 0) as held, coalesce(t.leased, 0) - coalesce(g.freed, 0) as leased,
            coalesce(t.n < 0, false) or coalesce(g.fewer, false) as fewer,
            coalesce(cardinality(t.pri), 0) as positions,
            coalesce(t.skips, 0) as skips,
            greatest(coalesce(t.tat, p_now), p_now) as tat,
            -- Its share of the first round (a visit that the batch's end cut short goes on) and of each
            -- further one.
            coalesce(t.credit, 0) as saved,
            case when o.starts is not null then o.starts
                when v_sole then p_limit
                when coalesce(t.credit, 0) >= 1 then t.credit
                else coalesce(t.credit, 0) + p_quantum * c.weight end as first,
            case when o.starts is null then p_quantum * c.weight else 0 end as quantum,
            o.starts is not null as paced, g.channel_id is not null as gained,
            -- Its turn is yet to come: count what the wakes say and leave it where it is.
            coalesce(t.turn > p_last and t.turn <= p_now, false) as early,
            -- After which position to look in each priority: the lowest that the token or a wake names.
            case when g.pri is null then t.pri when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).pri else g.pri end as pri,
            case when g.pri is null then t.due when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).due else g.due end as due,
            case when g.pri is null then t.mid when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).mid else g.mid end as mid
        from unnest(p_owned, p_rows, p_starts) o(id, tid, starts)
        cross join lateral (
            select k.queue, k.weight, k.concurrency, k.rate, k.burst,
                k.paused and coalesce(k.paused_until > p_now, true) as paused
            from channel k where k.ctid = o.tid offset 0
        ) c
        left join lateral latest_token_v1(o.id) t on true
        join unnest(p_channels) with ordinality p(id, ordinal) on p.id = o.id
        left join gain g on g.channel_id = o.id
    ),
    room as materialized (
        select l.*, least(l.room, p_limit) as quota
        from (
            select l.*,
                case when l.paused or l.early then 0
                    else greatest(0, floor(least(
                        l.first + (p_rounds - 1) * l.quantum, l.n, l.concurrency - l.leased,
                        case when l.rate is not null then l.burst - date_part('epoch', l.tat - p_now) * l.rate + 1e-9 end)))
                end::bigint as room
            from visit l
        ) l
    ),
    -- The messages of each channel, in the order in which they start.
    found as materialized (
        select r.*, m.ids, m.tids, m.dues, null::smallint[] as pris, null::smallint[] as done,
            least(coalesce(cardinality(m.ids), 0), r.quota) as found, coalesce(cardinality(m.ids) > r.quota, false) as rest
        from room r
        cross join lateral (
            select array_agg(m.id) as ids, array_agg(m.tid) as tids, array_agg(m.due) as dues
            from (
                select k.tid, k.id, k.due
                from startable_v1(r.channel_id, r.pri[1], r.due[1], r.mid[1], p_now) k
                -- Where one was taken off the count, now or at an earlier visit, a message may be left that no wake
                -- knows of: is there one more than all that are counted? Else what is left lies after an unread wake.
                order by k.due, k.id limit r.quota + case when (r.fewer or r.positions > 0) and r.quota = r.n then 1 else 0 end
            ) m
        ) m
        where r.quota > 0 and cardinality(r.pri) = 1
        union all
        select r.*, m.ids, m.tids, m.dues, m.pris, m.done, coalesce(cardinality(m.ids), 0), m.rest
        from room r
        cross join lateral claim_pick_v1(r.channel_id, r.pri, r.due, r.mid, r.quota, r.skips, p_now) m
        where r.quota > 0 and cardinality(r.pri) > 1
        union all
        select r.*, null, null, null, null, null, 0, coalesce(cardinality(r.pri) > 0, false) from room r
        where r.quota = 0 or r.pri is null or cardinality(r.pri) = 0
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
        select unnest(h.ids[1 : h.taken]) as id, unnest(h.tids[1 : h.taken]) as tid, h.channel_id,
            h.concurrency is not null or h.paced as counted
        from (select s.* from share s where s.taken > 0 order by s.ordinal) h
    ),
    leased as (
        insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
        select p.id, v_fence, p_now + p_lease, p_now, p.channel_id, p.counted, p_worker from picked p
    ),
    next as (
        select s.channel_id, s.version, s.tid, s.queue, s.turn as old_turn, s.known, s.held, s.positions, s.rest, s.n - s.taken as n,
            s.leased + case when s.concurrency is null and not s.paced then 0 else s.taken end as leased,
            -- Fair by time, and the batch was full before: its token stays as it is.
            s.paced and s.taken = 0 and s.upto > 0 and not s.gained and not s.early as unreached,
            s.next_tat as tat,
            case when s.paced then 0
                when s.early or (s.taken = 0 and s.upto > 0) then s.saved
                when s.taken > s.base and s.taken < s.upto then s.first + s.rounds * s.quantum - s.taken
                else s.first + s.ended * s.quantum - floor(s.first + s.ended * s.quantum)
            end as credit,
            case when (s.skips + s.quota) / 10 > 0 and s.taken > 0 then 0 else s.skips + s.taken end as skips,
            s.more, s.rate is not null or s.concurrency is not null as gated,
            case
                when not s.more or s.paused or s.concurrency - s.leased <= s.taken then null
                when s.early then s.turn
                when s.rate is not null and s.burst - date_part('epoch', s.next_tat - p_now) * s.rate + 1e-9 < 1 then
                    s.next_tat - floor((s.burst - 1) / s.rate * 1e6) * interval '1 microsecond'
                -- Cut short, or not reached in the last round: it keeps its turn, if it had one. (A turn from a
                -- wake's time would lie to the left of the floors of others.)
                when s.taken < s.upto and s.turn <= p_now then s.turn
                else p_now
            end as turn,
            -- Where to look after: the last message taken of each priority, or the old position.
            case when s.pris is null or s.taken = 0 then s.pri else (s.advanced).pri end as pri,
            case when s.taken = 0 then s.due when s.pris is null then s.dues[s.taken : s.taken] else (s.advanced).due end as due,
            case when s.taken = 0 then s.mid when s.pris is null then s.ids[s.taken : s.taken] else (s.advanced).mid end as mid
        from (
            -- Found fewer than the quota and took them all: nothing is left to look for.
            select s.*, s.n > s.taken and (s.found >= s.quota or s.found > s.taken) as more,
                -- Of the rounds after the first, how many are over for it. (The one that was begun last is no
                -- round of its own if all that were planned are whole.)
                case when s.taken < s.upto then s.rounds - 1 else least(s.rounds, p_rounds - 1) end as ended,
                -- Rounded up to the clock's step: rounding to the nearest would let the rate creep over.
                case when s.pris is not null and s.taken > 0 then
                    advanced_positions_v1(s.pri, s.due, s.mid, s.pris, s.dues, s.ids, s.taken, s.done) end as advanced,
                case when s.rate is not null then
                    s.tat + ceil(s.taken / s.rate * 1e6 - 1e-3) * interval '1 microsecond' end as next_tat
            from share s
        ) s
    ),
    -- A channel that is at rest and was at rest needs no new version.
    changed as materialized (
        select n.* from next n
        where not n.unreached and (n.more or n.rest or n.n <> 0 or n.leased <> 0 or n.gated
            or (n.tid is not null and (n.old_turn is not null or n.known <> 0 or n.held <> 0 or n.positions <> 0)))
    ),
    dropped as (
        delete from token k where k.ctid = any(array(select c.tid from changed c where c.tid is not null))
    ),
    requeued as (
        insert into token (channel_id, version, turn, n, leased, tat, credit, skips, queue, pri, due, mid)
        select c.channel_id, c.version + 1, c.turn, c.n, c.leased, c.tat,
            case when c.more then c.credit else 0 end,
            case when c.more and cardinality(c.pri) > 1 then c.skips else 0 end,
            c.queue,
            -- rest: something may be left though the count is down to none, because wakes were not read in
            -- the order of their messages. A later wake brings the count back, but not this position.
            case when c.more or c.rest then c.pri else '{}' end,
            case when c.more or c.rest then c.due else '{}' end,
            case when c.more or c.rest then c.mid else '{}' end
        from changed c
    )
    select array_agg(p.id), array_agg(p.tid) into ids, tids from picked p;
end
$$;

-- Part of claim, in queues that are fair by time: where each has reached, how many seconds a turn is, and since when.
-- Null: none of these is.
create or replace function "laneway".claim_reached_v1(p_queues text[], p_now timestamptz)
returns jsonb
language plpgsql
as $$
begin
    return (
        select jsonb_object_agg(f.queue, jsonb_build_array(coalesce((
            select t.booked from token t where t.queue = f.queue and t.turn <= p_now and t.booked >= f.reached - 100 * f.turn
            order by t.booked limit 1), f.reached), f.turn, extract(epoch from f.since)))
        from fair_queue f where f.queue = any(p_queues));
end
$$;

-- Part of claim, in queues that are fair by time: before the visit of the channels that the caller owns, how many messages
-- each may start, and what it is charged (pace_v1), in their order; null for those of other queues. It reads the same wakes
-- and tokens as the visit: they are the owner's.
--
-- p_pace: what claim_reached_v1 answered. p_all: these are all that may start something, so they may get further
-- ahead if the batch has room. each: what a message that runs is charged, by weight.
create or replace function "laneway".claim_pace_v1(
    p_pace jsonb, p_all boolean, p_owned uuid[], p_rows tid[], p_wakes tid[], p_limit integer, p_now timestamptz,
    out starts double precision[], out used double precision[], out cost double precision[], out each double precision[],
    out since timestamptz[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with
    gain as materialized (
        select w.channel_id, sum(w.n)::bigint as n, sum(w.freed)::bigint as freed,
            (-sum(w.message_id) filter (where w.freed > 0))::bigint as took,
            (sum(w.freed) filter (where w.freed > 0 and w.message_id < 0))::bigint as ended
        from wake w where w.ctid = any(p_wakes) group by w.channel_id
    ),
    visit as materialized (
        select o.ordinal, c.weight, c.concurrency, c.paused, f.reached, f.ahead, x.used, x.cost, x.each, x.booked,
            coalesce(t.n, 0) + coalesce(g.n, 0) as n, coalesce(t.leased, 0) - coalesce(g.freed, 0) as leased,
            case when x.cost = 0 and coalesce(t.leased, 0) > coalesce(g.freed, 0) then t.since else p_now end as since
        from unnest(p_owned, p_rows) with ordinality o(id, tid, ordinal)
        cross join lateral (
            select k.queue, k.weight, k.concurrency, k.paused and coalesce(k.paused_until > p_now, true) as paused
            from channel k where k.ctid = o.tid offset 0
        ) c
        left join lateral latest_token_v1(o.id) t on true
        left join gain g on g.channel_id = o.id
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
    ),
    -- How far ahead these may get: as far as fills the batch, if nobody else is there.
    further as materialized (
        select coalesce(min(x.scale) filter (where x.n >= p_limit), max(x.scale), 1) as scale
        from (
            select s.scale, sum(least(l.n, l.concurrency - l.leased, starts_v1(l.reached, l.ahead * s.scale, l.weight, l.cost, l.each, l.booked))) as n
            from visit l cross join (select power(2::double precision, k / 4.0::double precision) as scale from generate_series(0, case when p_all then 100 else -1 end) k) s
            where l.reached is not null and not l.paused group by s.scale
        ) x
    )
    select array_agg(case when l.reached is not null then starts_v1(l.reached, l.ahead * f.scale, l.weight, l.cost, l.each, l.booked) end order by l.ordinal),
        array_agg(l.used order by l.ordinal), array_agg(l.cost order by l.ordinal),
        array_agg(l.each / l.weight order by l.ordinal), array_agg(l.since order by l.ordinal)
    into starts, used, cost, each, since
    from visit l cross join further f;
end
$$;

-- Part of claim, in queues that are fair by time: note in the tokens that the visit has written what claim_pace_v1 said.
-- A token that the visit left as it was has its figures.
create or replace function "laneway".claim_charge_v1(
    p_owned uuid[], p_used double precision[], p_cost double precision[], p_each double precision[], p_since timestamptz[]
) returns void
language plpgsql
as $$
begin
    update token k set
        used = p_used[array_position(p_owned, k.channel_id)], cost = p_cost[array_position(p_owned, k.channel_id)],
        since = p_since[array_position(p_owned, k.channel_id)],
        booked = p_used[array_position(p_owned, k.channel_id)] + k.leased * p_each[array_position(p_owned, k.channel_id)]
    where k.ctid = any(array(
        select t.tid from unnest(p_owned, p_used) o(id, used) cross join lateral latest_token_v1(o.id) t
        where o.used is not null and t.used is null));
end
$$;

-- Part of claim: what a channel has had of the workers' time, in a queue that is fair by time
-- (docs/decisions/0023-fair-by-time.md). Seconds, by weight.
--
-- used: what its ended handlers took. each: what it is charged for a message that runs; when that has ended, the true
-- time takes its place. booked: both together; the channels that have booked the least are next.
-- cost: the moving mean of its run times, 0 while none has ended: then a message is charged a turn, or as long as it
-- has run.
--
-- Keeps: whoever rested joins where the others are (p_reached), and owes no more than it did not rest; whoever did not
-- rest is behind by two messages at most. p_leased: its leases now; p_took, p_ended: microseconds and number of those
-- that ended since its token was written.
create or replace function "laneway".pace_v1(
    p_reached double precision, p_turn double precision, p_weight double precision, p_leased bigint,
    p_used double precision, p_cost double precision, p_since timestamptz, p_took bigint, p_ended bigint,
    p_resting boolean, p_now timestamptz
) returns table (used double precision, cost double precision, each double precision, booked double precision)
language sql immutable
as $$
    select b.used + b.bound - b.booked, b.cost, b.each, b.bound
    from (
        select a.*, case
            when p_resting then greatest(p_reached, least(
                a.booked - greatest(0, extract(epoch from p_now - p_since)), p_reached + 3600))
            else greatest(p_reached - 2 * greatest(p_turn, a.each / p_weight), a.booked) end as bound
        from (
            select e.*, e.used + greatest(p_leased, 0) * e.each / p_weight as booked
            from (
                select m.*, case when m.cost > 0 then greatest(m.cost, 1e-6) else greatest(p_turn * p_weight,
                    case when p_leased > 0 then extract(epoch from p_now - p_since) end) end::double precision as each
                from (
                    select coalesce(p_used, p_reached) + coalesce(p_took, 0) / 1e6 / p_weight as used,
                        case when coalesce(p_ended, 0) = 0 then coalesce(p_cost, 0)
                            when coalesce(p_cost, 0) = 0 then p_took / 1e6 / p_ended
                            else (4 * p_cost + p_took / 1e6) / (4 + p_ended) end::double precision as cost
                ) m
            ) e
        ) a
    ) b
$$;

-- Part of claim: how many messages a channel may start until it is p_turn ahead of the others: at least one, if it is
-- not there yet. While its run times are not known, one at a time.
create or replace function "laneway".starts_v1(
    p_reached double precision, p_turn double precision, p_weight double precision, p_cost double precision,
    p_each double precision, p_booked double precision
) returns double precision
language sql immutable
as $$
    select case when p_booked >= p_reached + p_turn then 0
        else greatest(case when p_cost > 0 then 1 else 0 end,
            floor((p_reached + p_turn - p_booked) * p_weight / p_each + 1e-9)) end
$$;
