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
-- Answers the fence of this visit, the leased messages and their row addresses.
create or replace function "laneway".claim_visit_v1(
    p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_limit integer,
    p_lease interval, p_worker text, p_quantum integer, p_rounds double precision, p_now timestamptz,
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
            case when v_sole then p_limit
                when coalesce(t.credit, 0) >= 1 then t.credit
                else coalesce(t.credit, 0) + p_quantum * c.weight end as first,
            p_quantum * c.weight as quantum,
            -- Its turn is yet to come: count what the wakes say and leave it where it is.
            coalesce(t.turn > p_last and t.turn <= p_now, false) as early,
            -- After which position to look in each priority: the lowest that the token or a wake names.
            case when g.pri is null then t.pri when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).pri else g.pri end as pri,
            case when g.pri is null then t.due when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).due else g.due end as due,
            case when g.pri is null then t.mid when cardinality(t.pri) > 0 then
                (lowest_positions_v1(t.pri, t.due, t.mid, g.pri, g.due, g.mid)).mid else g.mid end as mid
        from unnest(p_owned, p_rows) o(id, tid)
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
            h.concurrency is not null as counted
        from (select s.* from share s where s.taken > 0 order by s.ordinal) h
    ),
    leased as (
        insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
        select p.id, v_fence, p_now + p_lease, p_now, p.channel_id, p.counted, p_worker from picked p
    ),
    next as (
        select s.channel_id, s.version, s.tid, s.queue, s.turn as old_turn, s.known, s.held, s.positions, s.rest, s.n - s.taken as n,
            s.leased + case when s.concurrency is null then 0 else s.taken end as leased,
            s.next_tat as tat,
            case when s.early or (s.taken = 0 and s.upto > 0) then s.saved
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
        where n.more or n.rest or n.n <> 0 or n.leased <> 0 or n.gated
            or (n.tid is not null and (n.old_turn is not null or n.known <> 0 or n.held <> 0 or n.positions <> 0))
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
