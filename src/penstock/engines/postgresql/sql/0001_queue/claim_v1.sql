-- claim: take up to p_limit messages under leases, fairly over the channels of the given queues.
--
-- Keeps: at most `concurrency` leases and `burst + window x rate` starts a channel; channels are
-- served least recently served first, `quantum x weight` messages a visit; inside a channel by
-- (priority, due, publish order). An idle claim writes nothing.
--
-- Locks: channel rows, with SKIP LOCKED. It waits only while it holds no row that was there before:
-- to insert new channel rows (in id order), and once for a channel when all are held by others. So
-- claims cannot deadlock, with each other or with the verbs that lock channel rows in id order.
--
-- One pass: look (which channels are next, from the floors on), own (lock their rows), serve
-- (serve_v1: consume wakes and tokens, lease, requeue). Every step is a new statement and sees
-- what was committed before it.
--
-- Floors: the caller's memory of where the live part of the ring and of the wakes begins, with the
-- transactions that were running then: only they can still add something to the left, and when
-- one has ended the scan goes back to where it began. Null: scan from the left edge. A snapshot
-- lists only those of them that are older than the newest one that has ended; age() tells how many
-- numbers were given out since, without taking one, but only the first time in a transaction: a
-- second claim in it answers no floors.
--
-- Crowd: claims that come while others are at work would all stand before the same channels. So each
-- takes one of sixteen parts of the channels (part_v1: all wakes of a channel are in one part), that
-- whose work is the eldest of those that no other is at, and asks for no more once half its batch is
-- full. Who looks at all channels holds the crowd's lock, who looks at a part shares it; both are only
-- tried, so nobody waits for them. p_crowd is the caller's memory of having met others; now and then it
-- looks at all channels nevertheless, so that none waits for a claim that holds its part and is slow.
--
-- Answers the messages (times as seconds since 1970, cheap to read), then one row without id: the
-- answer ('got', 'empty', 'blocked', 'busy'), the lease's times, when to look again, and the floors.
create or replace function "penstock".claim_v1(
    p_queues text[],
    p_limit integer,
    p_lease interval,
    p_worker text,
    p_quantum integer default 10,
    p_turn_floor timestamptz default null,
    p_wake_floor timestamptz default null,
    p_strays bigint[] default '{}',
    p_stray_turns timestamptz[] default '{}',
    p_stray_wakes timestamptz[] default '{}',
    p_crowd boolean default false,
    p_now timestamptz default null
) returns table (
    id bigint, fence bigint, queue text, channel text, kind text, priority smallint, attempt bigint,
    max_attempts integer, due double precision, published_at double precision,
    first_published_at double precision, expires_at double precision, key text, content_type text,
    headers jsonb, state_type text, state bytea, payload bytea, spent integer,
    answer text, claimed_at timestamptz, until timestamptz, look_again timestamptz,
    turn_floor timestamptz, wake_floor timestamptz,
    strays bigint[], stray_turns timestamptz[], stray_wakes timestamptz[], crowd boolean
)
language plpgsql
-- Every table is read through a lateral look-up or by row address, so that index scans are the only
-- way; what is left to the planner is joins of small sets, whose sizes it must not guess.
set search_path = "penstock", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set enable_memoize = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '5s'
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_first timestamptz;
    v_snapshot pg_snapshot;
    v_newest bigint;
    v_blind boolean;
    v_turn_from timestamptz;
    v_wake_from timestamptz;
    v_left integer := p_limit;
    v_got integer;
    v_span integer;
    v_read integer;
    v_plain boolean;
    v_lanes uuid[];
    v_supply bigint[];
    v_total bigint;
    v_yield bigint;
    v_tids tid[];
    v_calls tid[];
    v_owned uuid[];
    v_rows tid[];
    v_queues text[];
    v_last timestamptz;
    v_unread boolean;
    v_ids bigint[];
    v_fence bigint;
    v_new uuid[];
    v_more boolean;
    v_holding boolean := false;
    v_lock bigint;
    v_spread boolean;
    v_again boolean;
    v_part integer;
    v_vain integer[] := '{}';
    v_width integer;
    v_reach integer := 1;
    v_want integer;
    v_rounds double precision;
    v_heard boolean;
    v_far boolean;
    v_met bigint;
    v_met_before bigint;
    v_cut boolean;
    -- A claim that one channel can fill makes rounds of its own size: a whole quantum of each would make those
    -- who come one by one wait, and a weight counts only if what the batch's end cuts off is remembered.
    v_quantum integer := least(p_quantum, p_limit);
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'penstock: claim needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Claim on a connection of its own.';
    end if;

    v_lock := hashtextextended(p_queues::text, 'token'::regclass::oid::bigint);
    v_spread := not p_crowd or random() < 0.9;
    crowd := p_crowd and v_spread or not pg_try_advisory_xact_lock(v_lock);
    for v_pass in 1 .. 20 loop
        v_now := coalesce(p_now, clock_timestamp());
        v_more := false;
        answer := null;
        if v_pass = 1 then
            v_first := v_now;
            v_snapshot := pg_current_snapshot();
            v_newest := (age('3'::xid)::bigint + 3 - pg_snapshot_xmax(v_snapshot)::text::bigint) & 4294967295;
            v_blind := v_newest > 1000 or p_limit < 1 or pg_current_xact_id_if_assigned() is not null
                or coalesce(current_setting('penstock.claimed', true), '') <> '';
            perform set_config('penstock.claimed', 'once', true);
            -- A clock that was set back makes the floors worthless.
            v_turn_from := case when p_turn_floor <= v_now then p_turn_floor else 'epoch' end;
            v_wake_from := case when p_wake_floor <= v_now then p_wake_floor else 'epoch' end;
        end if;

        -- In every pass: one may have ended while this claim waited, and something younger come since.
        if cardinality(p_strays) > 0 then
            select least(v_turn_from, s.turn), least(v_wake_from, s.wake) into v_turn_from, v_wake_from
            from surfaced_v1(p_strays, p_stray_turns, p_stray_wakes) s;
        end if;

        v_part := null;
        if crowd and (v_pass > 1 or v_spread) and (v_pass <= 2 or not v_holding) then
            perform pg_try_advisory_xact_lock_shared(v_lock);
            for v_part in
                select p.part from (select e.part, min(e.at) as at, count(*) over () as parts from (
                    select part_v1(t.channel_id) as part, t.turn as at
                    from unnest(p_queues) q(name) cross join lateral (
                        select k.channel_id, k.turn from token k
                        where k.queue = q.name and k.turn >= v_turn_from and k.turn <= v_now
                        order by k.turn limit least(v_left + 20, 100)) t
                    union all
                    select part_v1(w.channel_id), w.at
                    from unnest(p_queues) q(name) cross join lateral (
                        select k.channel_id, k.at from wake k
                        where k.queue = q.name and k.at >= v_wake_from and k.at <= v_now
                        order by k.at limit least(v_left + 20, 100)) w
                ) e group by e.part) p
                -- A crowd before one busy channel has nothing to share out.
                where p.parts > 1 and p.part <> all(v_vain) order by p.at
            loop
                exit when pg_try_advisory_xact_lock(v_lock + 1 + v_part);
                v_part := null;
            end loop;
        end if;
        v_width := case when v_part is null then 1 else 16 end;

        v_want := v_left * v_reach;
        v_span := v_want + 10;
        -- So few wakes do not tell who stands before whom. So every eighth claim looks at eight times as many, every
        -- eighth of these at eight times as many again, and so on; and takes note of all news that it finds.
        v_far := v_part is not null or v_pass = 1 and random() < 0.125;
        if v_far and v_part is null then
            v_span := greatest(v_span, least(v_span * 8 ^ floor(1 - ln(1 - random()) / ln(8)), 20000));
        end if;
        v_met_before := null;
        loop
            -- Look: the ring and the wakes, merged by time. A channel in the ring keeps its turn
            -- whatever its wakes say; a wake that came late joins at the end, so that holding a
            -- transaction open buys no place.
            with ring as materialized (
                select t.channel_id, t.turn, t.n, t.leased, t.credit, t.tat
                from unnest(p_queues) q(name) cross join lateral (
                    select r.channel_id, r.turn, r.n, r.leased, r.credit, r.tat from (
                        select k.channel_id, k.turn, k.n, k.leased, k.credit, k.tat
                        from token k
                        where k.queue = q.name and k.turn >= v_turn_from and k.turn <= v_now
                        order by k.turn limit v_want * v_width) r
                    where v_part is null or part_v1(r.channel_id) = v_part
                    order by r.turn limit v_want) t
            ),
            call as materialized (
                select w.tid, w.channel_id, w.at, w.n, w.freed, w.plain
                from unnest(p_queues) q(name) cross join lateral (
                    select r.tid, r.channel_id, r.at, r.n, r.freed, r.plain from (
                        select k.ctid as tid, k.channel_id, k.at, k.n, k.freed, k.priority = 0 and k.n > 0 and k.freed = 0 as plain
                        from wake k
                        where k.queue = q.name and k.at >= v_wake_from and k.at <= v_now
                        order by k.at limit v_span * v_width) r
                    where v_part is null or part_v1(r.channel_id) = v_part
                    order by r.at limit v_span) w
            ),
            lane as (
                select e.channel_id, sum(e.n)::bigint as n, count(e.turn) > 0 as ringed,
                    count(e.at) > 0 as called, count(e.at) > p_quantum as crowded,
                    coalesce(min(e.turn), min(case when e.at < p_wake_floor then v_now else e.at end)) as place,
                    sum(e.freed)::bigint as freed, max(e.credit) as credit, max(e.tat) as tat
                from (
                    select r.channel_id, r.turn, null::timestamptz as at, r.n, -r.leased as freed, r.credit, r.tat from ring r
                    union all
                    select c.channel_id, null, c.at, c.n, c.freed, null, null from call c
                ) e
                group by e.channel_id
            ),
            -- later: the turn of a channel in the ring, behind all that was read of it. Its wakes are no more than news.
            -- Reach: the wakes may all be of channels that can start nothing; then the ring fills the batch beside them.
            queued as materialized (
                -- Those whose visits ended in the same claim have the same place: the heavier ones were served first.
                select q.*, sum(q.supply) over (partition by v_reach > 1 and q.ringed
                    order by q.place, q.weight desc, q.channel_id rows unbounded preceding) - q.supply as before
                from (
                    select l.channel_id, l.ringed, l.called, l.crowded, l.weight, l.later, coalesce(l.later, l.place) as place,
                        case when l.later is null then l.n else 0 end as n,
                        case when l.later is null then l.supply else 0 end as supply
                    from (
                        select l.*, case when not l.ringed and (select count(*) from ring) >= v_want then (
                            select case when t.turn <= v_now then t.turn end from (
                                select k.turn from token k where k.channel_id = l.channel_id order by k.version desc limit 1
                            ) t) end as later,
                            coalesce(k.weight, 1) as weight,
                            -- What a visit can start, as far as one can tell from here.
                            case when k.paused then 0 else floor(greatest(0, least(
                                l.n, case when l.credit >= 1 then l.credit else greatest(1, p_quantum * coalesce(k.weight, 1)) end,
                                k.concurrency::double precision + l.freed,
                                k.burst - date_part('epoch', greatest(l.tat, v_now) - v_now) * k.rate + 1e-9))) end::integer as supply
                        from lane l left join lateral (
                            select k.weight, k.concurrency, k.rate, k.burst, k.paused
                            from channel k where k.id = l.channel_id
                                and (k.weight <> 1 or k.concurrency is not null or k.rate is not null or k.paused)
                            offset 0
                        ) k on true offset 0
                    ) l
                ) q
            )
            select c.lanes, c.supply, c.new, c.total, c.yield,
                w.tids, w.read, w.plain, coalesce((select min(r.turn) from ring r), v_now), coalesce(w.first, v_now),
                (select count(*) from queued q where q.called),
                (select max(q.place) from queued q where q.later is null and q.before < v_want),
                (select count(*) from ring) >= v_want
            into v_lanes, v_supply, v_new, v_total, v_yield, v_calls, v_read, v_plain, turn_floor, wake_floor, v_met, v_last, v_cut
            from (
                select array_agg(q.channel_id) as lanes, array_agg(q.n) as supply,
                    array_agg(q.channel_id) filter (
                        where not exists (select from channel k where k.id = q.channel_id offset 0)) as new,
                    sum(q.n) as total, sum(q.supply) as yield
                -- As many as fill the batch; and all of which many wakes were read: noted in one token, these no longer
                -- stand before those of others.
                from (
                    select q.* from queued q where q.crowded or case when q.later is null then q.before < v_want else v_far end
                    order by q.place, q.weight desc, q.channel_id limit v_want + 1000
                ) q
            ) c
            cross join (
                select array_agg(w.tid) as tids, count(*) as read, coalesce(bool_and(w.plain), true) as plain,
                    min(w.at) as first
                from call w
            ) w;

            -- One may have ended just before this look, which saw what came after it.
            if cardinality(p_strays) > 0 then
                select s.turn < v_turn_from or s.wake < v_wake_from, least(v_turn_from, s.turn), least(v_wake_from, s.wake)
                into v_again, v_turn_from, v_wake_from
                from surfaced_v1(p_strays, p_stray_turns, p_stray_wakes) s;
                continue when v_again;
            end if;
            -- Many wakes of few channels: read on, or those behind them would wait for them.
            if v_part is not null then
                exit when v_lanes is not null;
                v_part := null;
                v_width := 1;
            else
                -- Unless ten times as many met many more channels: then nobody hides another.
                exit when v_read < v_span or v_span > 20000
                    or v_yield >= v_want and (v_read <= 2 * v_met or v_met >= 5 * v_met_before);
                v_met_before := v_met;
                v_span := v_span * 10;
            end if;
        end loop;
        if v_part is not null then
            -- The live part of the tables begins where it does for all.
            select coalesce(min(t.turn), v_now), coalesce(min(w.at), v_now) into turn_floor, wake_floor
            from unnest(p_queues) q(name)
            left join lateral (
                select k.turn from token k where k.queue = q.name and k.turn >= v_turn_from and k.turn <= v_now
                order by k.turn limit 1) t on true
            left join lateral (
                select k.at from wake k where k.queue = q.name and k.at >= v_wake_from and k.at <= v_now
                order by k.at limit 1) w on true;
        end if;
        if v_pass = 1 and not v_blind
            and (v_newest > 0 or pg_snapshot_xmin(v_snapshot) <> pg_snapshot_xmax(v_snapshot)) then
            select array_agg(x.xid), array_agg(x.turn), array_agg(x.wake)
            into strays, stray_turns, stray_wakes
            from (
                select i.xid,
                    coalesce(s.turn, case when p_turn_floor <= v_first then p_turn_floor end, 'epoch') as turn,
                    coalesce(s.wake, case when p_wake_floor <= v_first then p_wake_floor end, 'epoch') as wake
                from (
                    select i.xid::text::bigint from pg_snapshot_xip(v_snapshot) i(xid)
                    union all
                    select pg_snapshot_xmax(v_snapshot)::text::bigint + g from generate_series(0, v_newest - 1) g
                ) i(xid)
                left join unnest(p_strays, p_stray_turns, p_stray_wakes) s(xid, turn, wake) on s.xid = i.xid
            ) x;
        end if;
        exit when v_lanes is null;

        -- Rows for channels met for the first time. The insert may wait for another session that
        -- does the same, so it is done only while nothing is held, in id order.
        if v_new is not null and not v_holding then
            insert into channel (id, queue, name)
            select distinct on (w.channel_id) w.channel_id, w.queue, w.channel
            from wake w where w.ctid = any(v_calls) and (w.channel_id in (select n from unnest(v_new) n)) is true
            order by w.channel_id
            on conflict do nothing;
        end if;
        -- Own: what another claim holds stays where it is.
        select coalesce(array_agg(c.id), '{}'), array_agg(c.tid), array_agg(c.queue), v_plain and bool_and(c.plain),
            exists (select from listener l where l.until > v_now)
        into v_owned, v_rows, v_queues, v_plain, v_heard
        from (
            select k.id, k.ctid as tid, k.queue,
                k.weight = 1 and k.concurrency is null and k.rate is null and not k.paused as plain
            from channel k where k.id = any(v_lanes) for no key update skip locked
        ) c;
        v_unread := v_part is not null or v_read >= v_span;
        v_more := v_unread or cardinality(v_owned) < cardinality(v_lanes);
        if cardinality(v_owned) = 0 then
            answer := 'busy';
            exit when v_holding;
            crowd := true;
            if v_part is not null then
                v_vain := v_vain || v_part;
            elsif v_pass > 1 and v_yield < v_want and v_read < v_span and not v_cut then
                -- Everything due is being claimed by others: stand in line for the first channel, once,
                -- while nothing else is held.
                v_holding := true;
                perform from channel c where c.id = v_lanes[1] for no key update;
            elsif v_pass > 1 then
                -- Past what one channel could give, or a few that are held would hide all others.
                v_reach := least(greatest(4 * v_reach, p_quantum / v_left + 1), 1024);
            end if;
            continue;
        end if;
        v_holding := true;

        -- With few busy channels one quantum each does not fill the batch: several rounds at once.
        v_rounds := 1;
        if cardinality(v_owned) < cardinality(v_lanes) then
            select sum(x.n), sum(least(x.n, p_quantum)), array_agg(x.n) into v_total, v_yield, v_supply
            from unnest(v_lanes, v_supply) x(id, n) where (x.id in (select o from unnest(v_owned) o)) is true;
        end if;
        while v_yield < v_left and v_yield < v_total loop
            v_rounds := v_rounds * 2;
            v_yield := (select sum(least(s, v_rounds * p_quantum)) from unnest(v_supply) s);
        end loop;

        -- Never before the look: what was due then must be found.
        v_now := coalesce(p_now, greatest(v_now, clock_timestamp()));
        claimed_at := coalesce(claimed_at, v_now);
        v_got := 0;
        if v_plain and not v_heard and (v_rounds = 1 or cardinality(v_lanes) = 1) then
            v_fence := nextval('fence');
            -- The short way, for channels without limits, weights and priorities: what serve_v1 does, in a
            -- statement of half its size, and so of half its start. It does nothing if the tokens or wakes know of
            -- anything else.
            return query
            with
            known as materialized (
                select p.ordinal, o.id as channel_id, o.queue, t.tid, coalesce(t.version, 0) as version, t.turn,
                    coalesce(t.n, 0) as n, coalesce(t.credit, 0) as credit, t.due[1] as due, t.mid[1] as mid,
                    coalesce(t.n >= 0 and t.leased = 0 and (t.pri = '{}' or t.pri = '{0}') and t.credit = floor(t.credit), true)
                    and not (v_unread and exists (select from wake w where w.channel_id = o.id and (w.priority > 0 or w.due < w.at)
                        and w.at >= v_wake_from and w.at <= v_now offset 0)) as plain
                from unnest(v_owned, v_queues) o(id, queue)
                join unnest(v_lanes) with ordinality p(id, ordinal) on p.id = o.id
                left join lateral (
                    select k.ctid as tid, k.version, k.turn, k.n, k.leased, k.credit, k.pri, k.due, k.mid
                    from token k where k.channel_id = o.id order by k.version desc limit 1
                ) t on true
            ),
            call as (
                delete from wake w where w.ctid = any(v_calls) and (w.channel_id in (select k.channel_id from known k)) is true
                    and (select bool_and(k.plain) from known k)
                returning w.channel_id, w.due, w.message_id, w.n
            ),
            gain as (
                select c.channel_id, sum(c.n)::bigint as n, min(c.due) as due, min(c.message_id) - 1 as mid
                from call c group by c.channel_id
            ),
            lane as materialized (
                select l.*, greatest(0, least(l.want, v_left - (sum(l.want) over w - l.want))) as quota
                from (
                    select k.ordinal, k.channel_id, k.queue, k.tid, k.version, k.turn, k.credit,
                        k.n + coalesce(g.n, 0) as n, 
                        k.tid is not null and (k.turn is not null or k.n <> 0 or k.due is not null) as awake,
                        k.due is not null as placed,
                        case when (k.due, k.mid) <= (g.due, g.mid) or g.due is null then k.due else g.due end as due,
                        case when (k.due, k.mid) <= (g.due, g.mid) or g.due is null then k.mid else g.mid end as mid,
                        case when k.credit >= 1 then k.credit else v_quantum end as first,
                        -- Its turn is yet to come: take note of the wakes and leave it in its place.
                        case when k.turn > v_last and k.turn <= v_now then 0
                            else least(k.n + coalesce(g.n, 0), case
                                when v_rounds > 1 then v_left
                                when k.credit >= 1 then k.credit::bigint else v_quantum end) end as want
                    from known k left join gain g on g.channel_id = k.channel_id
                    where (select bool_and(k.plain) from known k)
                ) l
                window w as (order by l.ordinal rows unbounded preceding)
            ),
            picked as materialized (
                select l.ordinal, l.channel_id, l.queue, m.*
                from (select l.* from lane l order by l.ordinal) l cross join lateral (
                    select k.id, k.channel, k.kind, k.attempt, k.max_attempts, k.due, k.published_at,
                        k.first_published_at, k.expires_at, k.key, k.content_type, k.headers, k.state_type, k.state, k.payload, k.spent
                    from message k
                    where k.channel_id = l.channel_id and k.priority = 0 and (k.due, k.id) > (l.due, l.mid) and k.due <= v_now
                        and (k.expires_at is null or k.expires_at > v_now)
                        and not exists (select from lease e where e.message_id = k.id offset 0)
                    order by k.due, k.id limit l.quota
                ) m
                where l.quota > 0
            ),
            leased as (
                insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
                select p.id, v_fence, v_now + p_lease, v_now, p.channel_id, false, p_worker from picked p
            ),
            next as materialized (
                select l.channel_id, l.queue, l.tid, l.version + 1 as version, l.n - coalesce(t.taken, 0) as n,
                    l.n > coalesce(t.taken, 0) and coalesce(t.taken, 0) >= l.quota as more,
                    -- A cancelled message may be off the count before its own wake is read: then one more is there
                    -- than is counted, which only this position knows of.
                    case when l.placed and l.n = t.taken then exists (
                        select from message k
                        where k.channel_id = l.channel_id and k.priority = 0 and (k.due, k.id) > (t.due, t.last) and k.due <= v_now
                            and (k.expires_at is null or k.expires_at > v_now)
                            and not exists (select from lease e where e.message_id = k.id offset 0)
                        offset 0) else false end as rest,
                    case when l.quota = l.want and l.want > 0 then 0 when l.quota = 0 then l.credit
                        else l.first - coalesce(t.taken, 0) end as credit,
                    case when l.quota = l.want and l.want > 0 or l.turn is null or l.turn > v_now then v_now else l.turn end as turn,
                    coalesce(t.due, l.due) as due, coalesce(t.last, l.mid) as mid
                from lane l
                left join (
                    select p.ordinal, count(*) as taken, max(p.due) as due, (array_agg(p.id))[count(*)] as last
                    from picked p group by p.ordinal
                ) t on t.ordinal = l.ordinal
                -- A channel that is at rest and was at rest needs no new version.
                where l.n > 0 and (l.awake or l.n <> coalesce(t.taken, 0))
            ),
            dropped as (
                delete from token k where k.ctid = any(array(select n.tid from next n where n.tid is not null))
            ),
            requeued as (
                insert into token (channel_id, version, turn, n, leased, credit, skips, queue, pri, due, mid)
                select n.channel_id, n.version, case when n.more then n.turn end, n.n, 0, case when n.more then n.credit else 0 end, 0,
                    n.queue,
                    case when n.more or n.rest then '{0}' else '{}' end::smallint[],
                    case when n.more or n.rest then array[n.due] else '{}' end,
                    case when n.more or n.rest then array[n.mid] else '{}' end
                from next n
            )
            select p.id, v_fence, p.queue, p.channel, p.kind, 0::smallint, p.attempt + 1, p.max_attempts,
                date_part('epoch', p.due), date_part('epoch', p.published_at),
                date_part('epoch', p.first_published_at), date_part('epoch', p.expires_at),
                p.key, p.content_type, p.headers, p.state_type, p.state, p.payload, p.spent,
                null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
                null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean
            from picked p;
            get diagnostics v_got = row_count;
        end if;
        if v_got = 0 then
            -- Many wakes may lie between those that were read and one of a higher priority, or of a message
            -- that was given back: a visit knows all of these.
            if v_unread then
                v_calls := v_calls || array(
                    select w.tid from unnest(v_owned) o cross join lateral (
                        select k.ctid as tid from wake k
                        where k.channel_id = o and (k.priority > 0 or k.due < k.at) and k.at >= v_wake_from and k.at <= v_now
                        offset 0) w);
            end if;
            select s.fence, s.ids, s.tids into v_fence, v_ids, v_tids
            from serve_v1(v_lanes, v_last, v_owned, v_rows, v_calls, v_left, p_lease, p_worker, v_quantum, v_rounds, v_now) s;
            -- Leased to us and the channel is ours: the rows stay where they were read.
            return query
            select m.id, v_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
                date_part('epoch', m.due), date_part('epoch', m.published_at),
                date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
                m.key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
                null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
                null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean
            from unnest(v_tids) x(tid)
            cross join lateral (select k.* from message k where k.ctid = x.tid offset 0) m;
            v_got := coalesce(cardinality(v_ids), 0);
            if v_heard and v_got > 0 then
                perform tell_v1(array['claimed'], v_ids, v_now);
            end if;
        end if;
        v_left := v_left - v_got;
        exit when v_left <= 0;
        if crowd and 2 * v_left <= p_limit then
            v_more := true;
            exit;
        end if;
        -- News that brought nothing (of channels whose turn is yet to come, of ended leases): reach further.
        v_reach := case when v_got = 0 then least(4 * v_reach, 1024) else 1 end;
        v_more := v_more or cardinality(v_lanes) >= v_want + 1000 or v_total > v_got;
        if not v_more then
            -- A channel that was parked (paused, full) has more than its wakes told of: it is in the ring now. And
            -- behind channels that start nothing (cancelled, of little weight) others may wait.
            v_more := exists (
                select from token t where t.queue = any(p_queues) and t.turn >= v_turn_from and t.turn <= v_now);
        end if;
        exit when not v_more;
    end loop;

    if v_left < p_limit then
        answer := 'got';
    elsif v_more then
        answer := 'busy';
    elsif answer is null then
        answer := case when
            exists (select from token t where t.queue = any(p_queues) and t.turn is null and t.n > 0)
            or exists (select from token t where t.queue = any(p_queues) and t.turn > v_now)
            then 'blocked' else 'empty' end;
    end if;
    if v_left > 0 then
        look_again := case when answer = 'busy' or v_more then v_now else (
            select min(least(
                (select t.turn from token t where t.queue = q.name and t.turn > v_now order by t.turn limit 1),
                (select w.at from wake w where w.queue = q.name and w.at > v_now order by w.at limit 1)))
            from unnest(p_queues) q(name)) end;
    end if;
    -- What began after the first look is in no list, so the floors stay before it.
    turn_floor := case when not v_blind then least(turn_floor, v_first) end;
    wake_floor := case when not v_blind then least(wake_floor, v_first) end;
    id := null;
    until := claimed_at + p_lease;
    return next;
end
$$;
