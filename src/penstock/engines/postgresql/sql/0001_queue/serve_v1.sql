-- Part of claim: serve the channels whose rows the caller has locked.
--
-- Keeps: what it consumes (wakes, tokens) it also looks at, in the same statement, and what is
-- left it appends again to the right; the sum of n over a channel's token and wakes is the number
-- of its waiting messages, and its token's `leased` less the wakes' `freed` the number of its
-- counted leases.
--
-- A visit takes no more than its wakes and token account for: a message whose wake is still to be
-- read is left to that wake, so that visits and messages stay in step.
--
-- p_lanes/p_places: the channels in serving order, with the time that gave them their place.
create or replace function "penstock".serve_v1(
    p_lanes uuid[], p_places timestamptz[], p_owned uuid[], p_tids tid[], p_limit integer,
    p_lease interval, p_worker text, p_quantum integer, p_rounds double precision, p_now timestamptz
) returns table (
    id bigint, fence bigint, queue text, channel text, kind text, priority smallint, attempt bigint,
    max_attempts integer, due timestamptz, published_at timestamptz, first_published_at timestamptz,
    expires_at timestamptz, claimed_at timestamptz, until timestamptz, key text, content_type text,
    headers jsonb, state_type text, state bytea, payload bytea
)
language plpgsql
-- Every table is read through a lateral look-up or by row address, so that index scans are the only
-- way; what is left to the planner is joins of small sets, for which it must not guess sizes.
set enable_nestloop = off
set enable_hashjoin = on
as $$
#variable_conflict use_column
declare
    v_last timestamptz := p_places[cardinality(p_places)];
begin
    return query
    with
    call as (
        delete from wake w where w.ctid = any(p_tids) and w.channel_id = any(p_owned)
        returning w.channel_id, w.priority, w.due, w.message_id, w.n, w.freed
    ),
    gain as materialized (
        select c.channel_id, sum(c.n) as n, sum(c.freed) as freed from call c group by c.channel_id
    ),
    -- The channel, its policy and what its token remembers.
    lane as materialized (
        select
            o.id as channel_id, o.ordinal, o.place, c.queue, c.concurrency, c.rate, c.burst, c.paused,
            t.tid, coalesce(t.version, 0) as version, t.turn, t.clean, t.pri, t.due, t.mid,
            coalesce(t.n, 0) as known, coalesce(t.n, 0) + coalesce(g.n, 0) as n,
            coalesce(t.leased, 0) as held, coalesce(t.leased, 0) - coalesce(g.freed, 0) as leased,
            coalesce(t.skips, 0) as skips,
            greatest(coalesce(t.tat, p_now), p_now) as tat,
            -- A visit that the batch's end cut short goes on; else a new quantum is due.
            case when cardinality(p_lanes) = 1 then p_limit
                when coalesce(t.credit, 0) >= 1 then t.credit
                else coalesce(t.credit, 0) + p_rounds * p_quantum * c.weight end as credit,
            -- Its turn is yet to come: take note of the wakes and leave it in its place.
            coalesce(t.turn > v_last and t.turn <= p_now, false) as early
        from unnest(p_lanes, p_places) with ordinality o(id, place, ordinal)
        cross join lateral (
            select k.queue, k.weight, k.concurrency, k.rate, k.burst, k.paused
            from channel k where k.id = o.id offset 0
        ) c
        left join lateral (
            select k.ctid as tid, k.version, k.turn, k.n, k.leased, k.tat, k.credit, k.skips, k.clean, k.pri, k.due, k.mid
            from token k where k.channel_id = o.id order by k.version desc limit 1
        ) t on true
        left join gain g on g.channel_id = o.id
        where o.id = any(p_owned)
    ),
    room as materialized (
        select l.*,
            case when l.paused or l.early then 0
                else greatest(0, floor(least(
                    l.credit, p_limit, l.n, l.concurrency - l.leased,
                    l.burst - extract(epoch from l.tat - p_now)::double precision * l.rate + 1e-9)))
            end::bigint as quota
        from lane l
    ),
    -- Where to start in each priority: the lowest position that anyone told.
    head as materialized (
        select distinct on (h.channel_id, h.priority) h.channel_id, h.priority, h.due, h.mid, h.clean
        from (
            select c.channel_id, c.priority, c.due, c.message_id as mid, false as clean from call c where c.n > 0
            union all
            select l.channel_id, p.pri, p.due, p.mid, l.clean from lane l, unnest(l.pri, l.due, l.mid) p(pri, due, mid)
        ) h
        order by h.channel_id, h.priority, h.due, h.mid, h.clean desc
    ),
    found as materialized (
        select r.channel_id, r.ordinal, r.quota, r.skips, r.concurrency is not null as counted, r.bands, m.*
        from (
            select r.channel_id, r.ordinal, r.quota, r.n, r.skips, r.concurrency, h.priority, h.due, h.mid, h.clean,
                count(*) over (partition by r.channel_id) as bands
            from room r join head h on h.channel_id = r.channel_id
            where r.quota > 0
        ) r
        cross join lateral (
            select k.id, k.priority, k.due, k.queue, k.channel, k.kind, k.attempt, k.max_attempts, k.published_at,
                k.first_published_at, k.expires_at, k.key, k.content_type, k.headers, k.state_type, k.state, k.payload,
                row_number() over (order by k.due, k.id) as rank
            from message k
            where k.channel_id = r.channel_id and k.priority = r.priority
                and (k.due, k.id) >= (r.due, r.mid) and k.due <= p_now
                and (k.expires_at is null or k.expires_at > p_now)
                and (r.clean or not exists (select from lease e where e.message_id = k.id offset 0))
            order by k.due, k.id limit least(r.quota + 1, r.n)
        ) m
    ),
    -- In a channel with several priorities one start in ten goes to the longest waiting.
    ranked as materialized (
        select f.channel_id, f.ordinal, f.quota, f.counted, f.id, f.priority, f.due, f.rank, false as aged
        from found f where f.bands = 1
        union all
        select f.channel_id, f.ordinal, f.quota, f.counted, f.id, f.priority, f.due,
            row_number() over (
                partition by f.channel_id order by f.age > (f.skips + f.quota) / 10, f.priority desc, f.due, f.id),
            f.age <= (f.skips + f.quota) / 10
        from (
            select f.*, row_number() over (partition by f.channel_id order by f.due, f.id) as age
            from found f where f.bands > 1
        ) f
    ),
    picked as materialized (
        select p.*, nextval('fence') as fence
        from (
            select r.channel_id, r.ordinal, r.counted, r.id, r.rank, r.aged from ranked r
            where r.rank <= r.quota order by r.ordinal, r.rank limit p_limit
        ) p
    ),
    leased as (
        insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
        select p.id, p.fence, p_now + p_lease, p_now, p.channel_id, p.counted, p_worker from picked p
    ),
    taken as materialized (
        select p.channel_id, count(*) as taken, bool_or(p.aged) as fed from picked p group by p.channel_id
    ),
    -- The first message of each priority that was not taken, or the old position if none was read.
    rest as materialized (
        select x.channel_id, true as clean, array_agg(x.priority) as pri, array_agg(x.due) as due, array_agg(x.id) as mid
        from (
            select distinct on (r.channel_id, r.priority) r.channel_id, r.priority, r.due, r.id
            from ranked r left join taken t on t.channel_id = r.channel_id
            where r.rank > coalesce(t.taken, 0)
            order by r.channel_id, r.priority, r.due, r.id
        ) x
        group by x.channel_id
        union all
        select h.channel_id, bool_and(h.clean), array_agg(h.priority), array_agg(h.due), array_agg(h.mid)
        from head h join room r on r.channel_id = h.channel_id where r.quota = 0
        group by h.channel_id
    ),
    next as materialized (
        select r.channel_id, r.version, r.tid, r.queue, r.turn as old_turn, r.known, r.held, r.n - r.taken as n,
            r.leased + case when r.concurrency is null then 0 else r.taken end as leased,
            case when r.rate is not null then r.tat + r.taken / r.rate * interval '1 second' end as tat,
            case when r.early or r.taken < r.quota then r.credit - r.taken
                else r.credit - r.taken - floor(r.credit - r.taken) end as credit,
            case when r.fed then 0 else r.skips + r.taken end as skips,
            e.channel_id is not null as more, coalesce(e.clean, true) as clean,
            coalesce(e.pri, '{}') as pri, coalesce(e.due, '{}') as due, coalesce(e.mid, '{}') as mid,
            r.rate is not null or r.concurrency is not null as gated,
            case
                when e.channel_id is null or r.paused or r.concurrency - r.leased <= r.taken then null
                when r.early then r.turn
                when r.burst - extract(epoch from r.tat - p_now)::double precision * r.rate + 1e-9 - r.taken < 1 then
                    r.tat + ((r.taken - r.burst + 1) / r.rate) * interval '1 second' + interval '1 microsecond'
                -- Cut short: it keeps its turn, if it had one. (A turn from a wake's time would lie to the
                -- left of the floors of others.)
                when r.taken < r.quota and r.turn <= p_now then r.turn
                else p_now
            end as turn
        from (
            select r.*, coalesce(t.taken, 0) as taken, coalesce(t.fed, false) as fed
            from room r left join taken t on t.channel_id = r.channel_id
        ) r
        left join rest e on e.channel_id = r.channel_id and r.n > r.taken
    ),
    -- A channel that is at rest and was at rest needs no new version.
    changed as materialized (
        select n.* from next n
        where n.more or n.n <> 0 or n.leased <> 0 or n.gated
            or (n.tid is not null and (n.old_turn is not null or n.known <> 0 or n.held <> 0))
    ),
    dropped as (
        delete from token k where k.ctid = any(array(select c.tid from changed c where c.tid is not null))
    ),
    requeued as (
        insert into token (channel_id, version, turn, n, leased, tat, credit, skips, clean, queue, pri, due, mid)
        select c.channel_id, c.version + 1, c.turn, c.n, c.leased, c.tat,
            case when c.more then c.credit else 0 end,
            case when cardinality(c.pri) > 1 then c.skips else 0 end,
            c.clean, c.queue, c.pri, c.due, c.mid
        from changed c
    )
    select f.id, p.fence, f.queue, f.channel, f.kind, f.priority, f.attempt + 1, f.max_attempts, f.due,
        f.published_at, f.first_published_at, f.expires_at, p_now, p_now + p_lease, f.key,
        f.content_type, f.headers, f.state_type, f.state, f.payload
    from picked p join found f on f.id = p.id;
end
$$;
