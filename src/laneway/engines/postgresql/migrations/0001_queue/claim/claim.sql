-- claim: take up to p_limit messages under leases, fairly over the channels of the given queues.
--
-- Keeps: at most `concurrency` leases and `burst + window x rate` starts a channel; channels are
-- served least recently served first, `quantum x weight` messages a visit; inside a channel by
-- (priority, due, publish order). An idle claim writes nothing.
--
-- Locks: channel rows, with SKIP LOCKED. It waits only while it holds no row that was there before:
-- to insert new channel rows (in id order), and once for a channel when all are held by others. So
-- claims cannot deadlock, with each other or with the verbs that lock channel rows in id order. Neither wait is
-- long: whoever keeps a channel locked in an open transaction holds up that channel, not the others.
--
-- One pass: scan (claim_scan_v1: which channels are next, from the floors on), own (claim_own_v1:
-- lock their rows),
-- serve (claim_serve_v1, or claim_serve_plain_v1: consume wakes and tokens, lease, requeue). Every step
-- is a new statement and sees what was committed before it: all functions are volatile, so each of their
-- statements takes a new snapshot.
--
-- Floors: the caller's memory of where the live part of the ring and of the wakes begins, with the
-- transactions that were open then (p_open_*): only they can still add something to the left, and when
-- one has ended the scan goes back to where it began. Null: scan from the left edge. A snapshot
-- lists only those of them that are older than the newest one that has ended; age() tells how many
-- numbers were given out since, without taking one, but only the first time in a transaction: a
-- second claim in it answers no floors. They belong to a life of the server (p_life): in another one, what was written
-- behind them may be lost, and what they had passed is there again; then the scan begins at the left edge.
--
-- Contention: claims that run at the same time would all try to lock the same channels. So each takes one
-- of sixteen parts of the channels (claim_part_v1), and does not fill up its batch once it is half full.
-- A claim that scans all channels holds the queues' lock alone, one that scans a part shares it; both are
-- only tried, so nobody waits for them. p_contended is the caller's memory of having met others; now and
-- then it scans all channels nevertheless, so that none waits for a claim that holds its part and is slow.
-- If one channel has all that is due, there is nothing to divide: the claim waits for it before it scans.
--
-- Pauses: a queue that is paused is left out, and then no floors are answered: they would not cover it.
-- A lock for each queue, shared with other claims, makes pause_queue_v1 wait for this claim's end; it is
-- only tried, so that no claim waits for a pause.
--
-- Kinds: a claim of some kinds (p_kinds) leaves others where they are. The caller has called by_kind_v1 for
-- its queues; in these every claim keeps a position for each kind (claim_visit_kinds_v1), and a claim of some
-- kinds finds channels by their lanes (claim_scan_kinds_v1). Floors are those of the kinds.
--
-- Fair by time: in such queues channels are charged for how long their handlers take (claim_pace_v1). How
-- much every channel has had is asked before the first pass and, if something was started, noted in the end.
--
-- Answers the messages (times as seconds since 1970, cheap to read), then one row without id: the
-- answer ('got', 'empty', 'blocked', 'busy'), the lease's times, when to look again, the floors, and
-- under key whether anything waits for shared limits (start_limited_v1). With p_put_back false it answers messages of
-- paused kinds too, and under headers these kinds, each with the queue and for how many seconds to put it back.
create or replace function "laneway".claim_v1(
    p_queues text[],
    p_limit integer,
    p_lease interval,
    p_worker text,
    p_quantum integer default 10,
    p_turn_floor timestamptz default null,
    p_wake_floor timestamptz default null,
    p_open_xids bigint[] default '{}',
    p_open_turns timestamptz[] default '{}',
    p_open_wakes timestamptz[] default '{}',
    p_contended boolean default false,
    p_kinds text[] default null,
    p_now timestamptz default null,
    p_put_back boolean default true,
    p_life bigint default null
) returns setof "laneway".claimed_v1
language plpgsql
-- Every table is read through a lateral look-up or by row address, so that index scans are the only
-- way; what is left to the planner is joins of small sets, whose sizes it must not guess.
-- These settings hold in the functions that claim calls, too.
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set enable_memoize = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '250ms'
as $$
declare
    -- The first pass: when, which transactions were open, and whether floors cannot be answered.
    v_first timestamptz;
    v_snapshot pg_snapshot;
    v_newer bigint;
    v_no_floors boolean;
    v_claimed text;
    -- This pass: when, where to scan from, for how many messages, and what was found.
    v_now timestamptz;
    v_turn_from timestamptz;
    v_wake_from timestamptz;
    v_further integer := 1;
    v_want integer;
    v_scan "laneway".scan_v1;
    -- The channels that are ours, and how many visits each gets.
    v_owned "laneway".owned_v1;
    v_rounds double precision;
    v_holding boolean := false;
    -- The batch, and the row that ends it.
    v_got integer;
    v_left integer := p_limit;
    v_more boolean;
    v_end "laneway".claimed_v1;
    -- A claim that one channel can fill makes rounds of its own size: a whole quantum of each would make those
    -- who come one by one wait, and a weight counts only if what the batch's end cuts off is remembered.
    v_quantum integer := least(p_quantum, p_limit);
    -- Other claims.
    v_lock bigint := hashtextextended(p_queues::text || coalesce(p_kinds::text, ''), 'token'::regclass::oid::bigint);
    v_divide boolean := not p_contended or random() < 0.9;
    v_part integer;
    v_sole uuid;
    v_tried_parts integer[] := '{}';
    -- The queues that may be claimed from, whether one of the others is paused, and until when.
    v_queues text[];
    v_pauses boolean;
    v_paused text[];
    v_paused_until timestamptz;
    -- Whether all that waits is found by its kind (kind_queue; null: nobody claims by kind), and the lanes that
    -- are claimed from; null: all.
    v_settled boolean;
    -- Queues that are fair by time: how much every channel has had, and how far ahead one may get; null: none. And
    -- whether all that may start something was found.
    v_fair boolean;
    v_pace jsonb;
    v_all boolean;
    -- How many messages a channel of weight 1 is likely to start.
    v_each integer := p_quantum;
    v_lanes text[];
begin
    perform check_names_v1('queue', p_queues), check_numbers_v1('limit', array[coalesce(p_limit, -1)], 0, 10000), check_numbers_v1('quantum', array[coalesce(p_quantum, 0)], 1, 10000),
        check_leases_v1(array[p_lease]), check_names_v1('worker', array[p_worker]), check_names_v1('kind', p_kinds, true);
    if p_kinds is not null then
        v_lanes := array(select '=' || k from unnest(p_kinds) k) || '-'::text;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'laneway: claim needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'invalid_transaction_state', hint = 'Claim on a connection of its own.';
    end if;

    v_end.life := server_life_v1();
    if p_life is distinct from v_end.life then
        p_turn_floor := null;
        p_wake_floor := null;
        p_open_xids := '{}';
    end if;

    if cardinality(p_queues) = 1
        and pg_try_advisory_xact_lock_shared(hashtextextended(p_queues[1], 'pause'::regclass::oid::bigint)) then
        v_queues := p_queues;
    else
        v_queues := array(
            select q.name from unnest(p_queues) q(name)
            where pg_try_advisory_xact_lock_shared(hashtextextended(q.name, 'pause'::regclass::oid::bigint)));
    end if;
    -- A statement of its own: it sees what was committed before the locks were got.
    v_now := time_v1(p_now);
    select exists (select from pause p where p.queue = any(p_queues)),
        (select bool_and(k.settled) from kind_queue k where k.queue = any(p_queues)),
        (select min(k.limits) from limit_queue k where k.queue = any(p_queues)),
        exists (select from fair_queue f where f.queue = any(p_queues))
    into v_pauses, v_settled, v_end.key, v_fair;
    if v_pauses then
        select array_agg(p.queue) filter (where p.kind is null), min(p.until) filter (where p.kind is null),
            jsonb_agg(jsonb_build_array(p.queue, p.kind, extract(epoch from least(
                p.until - v_now, greatest(least(v_now - p.since, interval '5 minutes'), interval '10 seconds')))))
                filter (where p.kind is not null)
        into v_paused, v_paused_until, v_end.headers
        from pause p where p.queue = any(p_queues) and (p.until is null or p.until > v_now);
    end if;
    if v_end.headers is not null and p_put_back then
        return query
        select * from claim_put_back_v1(
            p_queues, p_limit, p_lease, p_worker, p_quantum, p_turn_floor, p_wake_floor, p_open_xids, p_open_turns,
            p_open_wakes, p_contended, p_kinds, p_now, p_life);
        return;
    end if;
    if v_fair then
        v_pace := claim_reached_v1(p_queues, v_now);
        v_each := 1;
    end if;
    if v_paused is not null then
        v_queues := array(select q.name from unnest(v_queues) q(name) where q.name <> all(v_paused));
    end if;
    if cardinality(v_queues) < cardinality(p_queues) then
        p_queues := v_queues;
        if cardinality(p_queues) = 0 then
            v_end.answer := case when v_paused is null then 'busy' else 'blocked' end;
            v_end.look_again := case when v_paused is null then v_now else v_paused_until end;
            v_end.contended := p_contended;
            return next v_end;
            return;
        end if;
        -- Floors of fewer queues would hide what waits in the others.
        p_turn_floor := null;
        p_wake_floor := null;
        p_open_xids := '{}';
        v_paused := coalesce(v_paused, '{}');
    end if;

    v_end.contended := p_contended and v_divide or not pg_try_advisory_xact_lock(v_lock);
    for v_pass in 1 .. 20 loop
        v_now := time_v1(p_now);
        v_more := false;
        v_end.answer := null;
        if v_pass = 1 then
            -- The clock before the snapshot, see write_time_v1.
            v_first := v_now;
            v_snapshot := pg_current_snapshot();
            v_newer := (age('3'::xid)::bigint + 3 - pg_snapshot_xmax(v_snapshot)::text::bigint) & 4294967295;
            v_no_floors := v_newer > 1000 or p_limit < 1 or pg_current_xact_id_if_assigned() is not null
                or coalesce(current_setting('laneway.claimed', true), '') <> '' or v_paused is not null;
            v_claimed := set_config('laneway.claimed', 'once', true);
            -- A clock that was set back makes the floors worthless.
            v_turn_from := case when p_turn_floor <= v_now then p_turn_floor else 'epoch' end;
            v_wake_from := case when p_wake_floor <= v_now then p_wake_floor else 'epoch' end;
        end if;
        -- In every pass: one may have ended while this claim waited, and something younger come since.
        if cardinality(p_open_xids) > 0 then
            select least(v_turn_from, o.turn), least(v_wake_from, o.wake) into v_turn_from, v_wake_from
            from claim_rescan_v1(p_open_xids, p_open_turns, p_open_wakes) o;
        end if;

        v_part := null;
        if v_lanes is null and v_end.contended and (v_pass > 1 or v_divide) and (v_pass <= 2 or not v_holding) then
            select p.part, p.sole into v_part, v_sole
            from claim_part_v1(p_queues, v_turn_from, v_wake_from, least(v_left + 20, 100), v_tried_parts, v_lock, v_now) p;
            if v_sole is not null and not v_holding then
                -- One channel has all that is due: wait for it now, once, instead of finding it locked after the scan.
                perform from channel c where c.id = v_sole for no key update skip locked;
                v_holding := found;
                if not v_holding then
                    begin
                        perform from channel c where c.id = v_sole for no key update;
                        v_holding := found;
                    exception when lock_not_available then
                        v_end.answer := 'busy';
                        if v_pass = 1 then
                            -- Nothing was scanned: the floors stay as they are.
                            v_scan.turn_floor := v_turn_from;
                            v_scan.wake_floor := v_wake_from;
                            v_end.open_xids := p_open_xids;
                            v_end.open_turns := p_open_turns;
                            v_end.open_wakes := p_open_wakes;
                        end if;
                        exit;
                    end;
                    v_now := time_v1(p_now);
                end if;
            end if;
        end if;
        v_want := v_left * v_further;
        if v_lanes is null then
            v_scan := claim_scan_v1(
                p_queues, v_want, v_each, v_part, v_pass = 1, v_further > 1, v_turn_from, v_wake_from, p_wake_floor,
                p_open_xids, p_open_turns, p_open_wakes, v_now);
        else
            v_scan := claim_scan_kinds_v1(
                p_queues, v_lanes, v_want, v_each, v_pass = 1, v_further > 1, v_turn_from, v_wake_from, p_wake_floor,
                p_open_xids, p_open_turns, p_open_wakes, v_now);
        end if;
        v_turn_from := v_scan.turn_from;
        v_wake_from := v_scan.wake_from;
        if v_pass = 1 and not v_no_floors
            and (v_newer > 0 or pg_snapshot_xmin(v_snapshot) <> pg_snapshot_xmax(v_snapshot)) then
            select o.xids, o.turns, o.wakes into v_end.open_xids, v_end.open_turns, v_end.open_wakes
            from claim_open_v1(
                v_snapshot, v_newer, case when p_turn_floor <= v_first then p_turn_floor end,
                case when p_wake_floor <= v_first then p_wake_floor end, p_open_xids, p_open_turns, p_open_wakes) o;
        end if;
        exit when v_scan.channels is null;

        v_owned := claim_own_v1(v_scan.channels, v_scan.new, v_scan.wakes, not v_holding, v_now);
        v_more := v_scan.unread or cardinality(v_owned.channels) < cardinality(v_scan.channels);
        if cardinality(v_owned.channels) = 0 then
            v_end.answer := 'busy';
            exit when v_holding;
            v_end.contended := true;
            if v_scan.part is not null then
                v_tried_parts := v_tried_parts || v_scan.part;
            elsif v_pass > 1 and v_scan.yield < v_want and not v_scan.unread and not v_scan.ring_cut then
                -- Everything due is being claimed by others: wait for the first channel, once, while nothing
                -- else is held.
                v_holding := true;
                begin
                    perform from channel c where c.id = v_scan.channels[1] for no key update;
                exception when lock_not_available then
                    exit;
                end;
            elsif v_pass > 1 then
                -- Past what one channel could give, or a few that are held would hide all others.
                v_further := least(greatest(4 * v_further, p_quantum / v_left + 1), 1024);
            end if;
            continue;
        end if;
        v_holding := true;

        v_all := v_pace is not null and v_scan.part is null and v_scan.yield < v_want and not v_scan.ring_cut and not v_scan.unread
            and (v_scan.new is null or cardinality(v_owned.channels) = cardinality(v_scan.channels));
        -- With few busy channels one quantum each does not fill the batch: several rounds at once.
        v_rounds := 1;
        if cardinality(v_owned.channels) < cardinality(v_scan.channels) then
            select sum(x.n), sum(least(x.n, p_quantum)), array_agg(x.n) into v_scan.total, v_scan.yield, v_scan.waiting
            from unnest(v_scan.channels, v_scan.waiting) x(id, n) where (x.id in (select o from unnest(v_owned.channels) o)) is true;
        end if;
        while v_scan.yield < v_left and v_scan.yield < v_scan.total loop
            v_rounds := v_rounds * 2;
            if cardinality(v_scan.waiting) = 1 then
                v_scan.yield := least(v_scan.total, v_rounds * p_quantum);
            else
                v_scan.yield := (select sum(least(s, v_rounds * p_quantum)) from unnest(v_scan.waiting) s);
            end if;
        end loop;

        -- Never before the scan: what was due then must be found.
        v_now := coalesce(p_now, greatest(v_now, clock_timestamp()));
        v_end.claimed_at := coalesce(v_end.claimed_at, v_now);
        v_got := 0;
        if v_settled is not null then
            return query
            select * from claim_serve_kinds_v1(
                v_lanes, not v_settled or not v_scan.plain, v_scan.channels, v_scan.last, v_owned.channels, v_owned.rows, v_scan.wakes, v_scan.unread, v_wake_from,
                v_rounds, v_left, p_lease, p_worker, v_quantum, v_owned.listeners, v_now, v_pace, v_all);
            get diagnostics v_got = row_count;
        elsif v_pace is null and v_scan.plain and v_owned.plain and not v_owned.listeners and (v_rounds = 1 or cardinality(v_scan.channels) = 1) then
            return query
            select * from claim_serve_plain_v1(
                v_scan.channels, v_scan.last, v_owned.channels, v_owned.queues, v_scan.wakes, v_scan.unread, v_wake_from,
                v_rounds > 1, v_left, p_lease, p_worker, v_quantum, v_now);
            get diagnostics v_got = row_count;
        end if;
        if v_got = 0 and v_settled is null then
            return query
            select * from claim_serve_v1(
                v_scan.channels, v_scan.last, v_owned.channels, v_owned.rows, v_scan.wakes, v_scan.unread, v_wake_from,
                v_rounds, v_left, p_lease, p_worker, v_quantum, v_owned.listeners, v_now, v_pace, v_all);
            get diagnostics v_got = row_count;
        end if;
        v_left := v_left - v_got;
        exit when v_left <= 0;
        if v_pace is not null and v_got = 0 and v_scan.new is not null then
            -- Those that have no row yet are for the next claim, which holds nothing.
            v_more := true;
            exit;
        end if;
        if v_end.contended and 2 * v_left <= p_limit then
            v_more := true;
            exit;
        end if;
        -- Wakes that brought nothing (of channels whose turn is yet to come, of ended leases): scan further.
        v_further := case when v_got = 0 then least(4 * v_further, 1024) else 1 end;
        v_more := v_more or cardinality(v_scan.channels) >= v_want + 1000 or v_scan.total > v_got;
        if not v_more and v_lanes is not null then
            -- What is left of these kinds, only another scan can say.
            v_more := true;
        elsif not v_more then
            -- A channel that was parked (paused, full) has more than its wakes told of: it is in the ring now. And
            -- behind channels that start nothing (cancelled, of little weight) others may wait.
            v_more := exists (
                select from token t where t.queue = any(p_queues) and t.turn >= v_turn_from and t.turn <= v_now);
        end if;
        exit when not v_more;
    end loop;

    if v_left < p_limit then
        v_end.answer := 'got';
    elsif v_more then
        v_end.answer := 'busy';
    elsif v_end.answer is null then
        v_end.answer := case when v_lanes is not null then claim_blocked_kinds_v1(p_queues, v_lanes, v_now) when
            exists (select from token t where t.queue = any(p_queues) and t.turn is null and t.n > 0)
            or exists (select from token t where t.queue = any(p_queues) and t.turn > v_now) then 'blocked' else 'empty' end;
        if v_paused <> '{}' then
            v_end.answer := 'blocked';
        end if;
    end if;
    if v_left > 0 then
        v_end.look_again := case when v_end.answer = 'busy' or v_more then v_now
            when v_lanes is not null then claim_next_kinds_v1(p_queues, v_lanes, v_now) else (
            select min(least(
                (select t.turn from token t where t.queue = q.name and t.turn > v_now order by t.turn limit 1),
                (select w.at from wake w where w.queue = q.name and w.at > v_now order by w.at limit 1)))
            from unnest(p_queues) q(name)) end;
        v_end.look_again := least(v_end.look_again, v_paused_until);
    end if;
    if v_pace is not null and v_left < p_limit then
        -- Not exact, and waits for nobody: it is where those join who come when nobody else is there.
        update fair_queue f set reached = (v_pace -> f.queue ->> 0)::double precision
        where f.ctid = any(array(
            select k.ctid from fair_queue k where (v_pace -> k.queue ->> 0)::double precision >= k.reached + k.turn for update skip locked));
    end if;
    -- What began after the first scan is in no list, so the floors stay before it.
    v_end.turn_floor := case when not v_no_floors then least(v_scan.turn_floor, v_first) end;
    v_end.wake_floor := case when not v_no_floors then least(v_scan.wake_floor, v_first) end;
    v_end.until := v_end.claimed_at + p_lease;
    return next v_end;
end
$$;

-- Part of claim: lock the rows of channels, and create those that are missing.
--
-- Keeps: whoever holds a channel's row owns its token and its wakes. What another claim holds is skipped.
--
-- Locks: channel rows with SKIP LOCKED. The insert may wait for another session that does the same, so it
-- is done only while nothing is held (p_insert), in id order, and for no longer than claim's lock_timeout: then
-- one row after the other, without those whose transaction stays open.
--
-- p_new: those of the channels that have no row yet; their names are in the wakes, p_wakes.
-- Answers the type owned_v1 (tables.sql).
create or replace function "laneway".claim_own_v1(
    p_channels uuid[], p_new uuid[], p_wakes tid[], p_insert boolean, p_now timestamptz
) returns "laneway".owned_v1
language plpgsql
as $$
declare
    v_owned "laneway".owned_v1;
    v_id uuid;
begin
    if p_new is not null and p_insert then
        begin
            insert into channel (id, queue, name)
            select distinct on (w.channel_id) w.channel_id, w.queue, w.channel
            from wake w where w.ctid = any(p_wakes) and (w.channel_id in (select n from unnest(p_new) n)) is true
            order by w.channel_id
            on conflict do nothing;
        exception when lock_not_available then
            perform set_config('lock_timeout', '5ms', true);
            foreach v_id in array p_new loop
                begin
                    insert into channel (id, queue, name)
                    select w.channel_id, w.queue, w.channel
                    from wake w where w.ctid = any(p_wakes) and w.channel_id = v_id limit 1
                    on conflict do nothing;
                exception when lock_not_available then
                    null;
                end;
            end loop;
        end;
    end if;
    select coalesce(array_agg(c.id), '{}'), array_agg(c.tid), array_agg(c.queue), bool_and(c.plain),
        exists (select from listener l where l.until > p_now)
    into v_owned
    from (
        select k.id, k.ctid as tid, k.queue,
            k.weight = 1 and k.concurrency is null and k.rate is null and not k.paused as plain
        from channel k where k.id = any(p_channels) for no key update skip locked
    ) c;
    return v_owned;
end
$$;
