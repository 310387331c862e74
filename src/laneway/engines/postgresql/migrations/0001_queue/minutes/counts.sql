-- count: bring the minutes and the kept counts up to date; part of upkeep, in a transaction of its own. Any process
-- may call it: one at a time works, the others answer at once.
--
-- Keeps: every history row and every publish is counted once, whatever is rolled back or killed: the position moves
-- in the transaction that adds the figures. Nothing is counted before every transaction has ended that could come
-- before it. Reads up to p_limit rows in parts. Locks its own row only.
-- Answers how many history rows and message ids were counted, and whether more is there.
create or replace function "laneway".count_v1(
    p_limit integer default 20000, p_now timestamptz default null, out counted bigint, out more boolean
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_state counting;
    v_setting setting;
    v_now timestamptz;
    v_ids bigint;
    v_history bigint;
    v_all boolean;
    v_exact boolean;
    v_minute timestamptz;
    v_noted boolean := false;
    v_upper bigint;
    v_part record;
begin
    perform check_numbers_v1('limit', array[coalesce(p_limit, 0)], 1, 100000);
    counted := 0;
    more := false;
    if p_now is not null and not pg_has_role(session_user, current_user, 'member') then
        p_now := null;
    end if;
    v_now := time_v1(p_now);
    if not pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.count', 0)) then
        return;
    end if;
    select c.* into v_state from counting c;
    select s.* into v_setting from setting s;
    v_minute := date_trunc('minute', v_now, 'UTC');
    -- The sequences are read before the number below: whoever took one of these ids had its own number before.
    select m.last_value - (not m.is_called)::integer, h.last_value - (not h.is_called)::integer into v_ids, v_history
    from message_id m, history_id h;
    if (v_state.xid, v_state.id, v_state.counted, v_state.to_history) = (v_state.to_xid, 0::bigint, v_ids, v_history)
        and v_state.history_changes = v_setting.history_changes
        and (v_state.begun or v_setting.history <> 'all')
        and date_trunc('minute', v_state.noted_at, 'UTC') = v_minute
        and not exists (select from staged_count s where not s.counted) then
        return;  -- Nothing has happened since the last cycle.
    end if;
    -- What is not kept cannot be counted: begin anew with what is there, once it is kept again.
    if v_state.begun and (v_setting.history <> 'all' or v_state.history_changes <> v_setting.history_changes) then
        v_state.begun := false;
        v_state.as_of := null;
        delete from live_count;
    end if;

    for v_cycle in 1 .. 2 loop
        if v_state.to_xid is null
            or (v_state.xid, v_state.id, v_state.counted) = (v_state.to_xid, 0::bigint, v_state.to_id) then
            v_state.to_id := v_ids;
            v_state.to_history := v_history;
            -- Our own number: all that were given before are lower. (A snapshot's xmax is not: transactions
            -- above it may have been running for long.)
            v_state.to_xid := pg_current_xact_id()::text::bigint;
            v_state.noted_at := v_now;
            v_state.changes_before := v_state.history_changes;
            v_state.history_changes := v_setting.history_changes;
            v_noted := true;
        end if;
        exit when pg_snapshot_xmin(pg_current_snapshot())::text::bigint < v_state.to_xid;
        v_all := v_setting.history = 'all' and v_state.history_changes = v_setting.history_changes;
        v_exact := v_all and v_state.changes_before = v_state.history_changes;

        if v_state.xid = 0 then
            v_state.xid := v_state.to_xid;
            v_state.counted := v_state.to_id;
        end if;
        while counted < p_limit and (v_state.xid, v_state.id) <> (v_state.to_xid, 0::bigint) loop
            v_upper := least(v_state.to_xid, v_state.xid + v_state.width);
            select * into v_part
            from count_history_v1(v_state.xid, v_state.id, v_upper, (p_limit - counted)::integer, v_exact);
            counted := counted + v_part.counted;
            if counted < p_limit then
                v_state.xid := v_upper;
                v_state.id := 0;
                if v_part.counted < p_limit / 4 then
                    v_state.width := least(v_state.width * 4, 1000000000);
                end if;
            else
                v_state.xid := v_part.last_xid;
                v_state.id := v_part.last_id;
                v_state.width := greatest(v_state.width / 2, 16);
            end if;
        end loop;
        if v_state.counted < v_state.to_id
            or exists (select from staged_count s where not s.counted and s.xid < v_state.to_xid) then
            v_state.counted := least(v_state.to_id, numbers_skipped_v1(v_state.counted));
            v_upper := least(v_state.to_id, v_state.counted + p_limit);
            perform count_published_v1(v_state.counted, v_upper, v_state.to_xid, v_exact);
            counted := counted + v_upper - v_state.counted;
            v_state.counted := v_upper;
        end if;
        if (v_state.xid, v_state.id, v_state.counted) <> (v_state.to_xid, 0::bigint, v_state.to_id) then
            more := true;
            exit;
        end if;
        if not v_state.begun and v_all then
            v_state.begun := count_begin_v1(v_state);
        end if;
        if v_state.begun then
            v_state.as_of := v_state.noted_at;
            perform count_depth_v1(v_state.noted_at, v_state.depth_at);
            v_state.depth_at := v_state.noted_at;
        end if;
        exit when v_noted;
    end loop;

    update counting c set begun = v_state.begun, xid = v_state.xid, id = v_state.id, counted = v_state.counted,
        width = v_state.width, to_xid = v_state.to_xid, to_id = v_state.to_id, to_history = v_state.to_history,
        noted_at = v_state.noted_at, as_of = v_state.as_of, depth_at = v_state.depth_at,
        history_changes = v_state.history_changes, changes_before = v_state.changes_before;
    delete from staged_count s where s.counted and s.last_id <= v_state.counted;
    perform forget_minutes_v1(v_now - interval '14 days');
end
$$;

-- Part of counting: delete old minutes and hours, some at a time. (Without statistics a bitmap would have all of them.)
create or replace function "laneway".forget_minutes_v1(p_before timestamptz)
returns void
language sql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    delete from minute m where m.ctid = any(array(
        select o.ctid from (values (1::smallint), (60)) s(span)
        cross join lateral (
            select k.ctid from minute k where k.span = s.span and k.at < p_before order by k.at limit 1000) o))
$$;

-- Part of counting: up to where no message has an id after this one, if that was before this life of the server: between
-- two lives lie numbers that nobody was given (server_life_v1).
create or replace function "laneway".numbers_skipped_v1(p_after bigint)
returns bigint
language sql stable
as $$
    select case when p_after >= l.last_value then p_after else least(
        l.last_value,
        (select min(m.id) - 1 from "laneway".message m where m.id > p_after),
        (select min(d.id) - 1 from "laneway".dead d where d.id > p_after),
        (select min(h.message_id) - 1 from "laneway".history h where h.message_id > p_after)) end
    from "laneway".server_life l
$$;

-- Part of counting: the first count, and the first one after the history was not kept for a time. Counts what
-- there is, once, as it was at the noted transaction number: what has ended or died since then is taken back,
-- because it will be counted from the history.
create or replace function "laneway".count_begin_v1(p_state "laneway".counting)
returns boolean
language plpgsql
as $$
begin
    -- Such a job got its ids after to_id was noted, and its number before to_xid was: note both again.
    if exists (select from staged_count s where s.xid < p_state.to_xid and s.last_id > p_state.to_id) then
        return false;
    end if;
    delete from live_count;
    with late as materialized (
        select s.at, s.last_id from staged_count s where s.xid >= p_state.to_xid
    ),
    part as (
        select m.queue, m.kind, count(*) as live, 0::bigint as dead from message m
        where m.id <= p_state.to_id and (m.part is null or m.part not in (select p.id from staged_part p))
            and not exists (select from late s where s.at = m.first_published_at and m.id <= s.last_id)
        group by m.queue, m.kind
        union all
        select d.queue, d.kind, 0, count(*) from dead d
        where d.id <= p_state.to_id
            and not exists (select from late s where s.at = d.first_published_at and d.id <= s.last_id)
        group by d.queue, d.kind
        union all
        select h.queue, h.kind, -sum(e.live), -sum(e.dead)
        from history h cross join lateral count_effect_v1(h.outcome, h.dead) e
        where h.xid >= p_state.to_xid and h.message_id <= p_state.to_id
            and not exists (select from late s where s.at = h.first_published_at and h.message_id <= s.last_id)
        group by h.queue, h.kind
    )
    insert into live_count (queue, kind, live, dead)
    select p.queue, p.kind, sum(p.live), sum(p.dead) from part p
    group by p.queue, p.kind having sum(p.live) <> 0 or sum(p.dead) <> 0;
    update staged_count s set counted = true where s.xid < p_state.to_xid;
    return true;
end
$$;

-- Part of counting: the messages with ids after p_after and up to p_to, which are all decided, and those of bulk
-- publishes below p_before. One snapshot shows each in one place: among the messages, the dead letters or, ended, in the
-- history. The rows of a bulk publish got their ids long before they were published, so it leaves a row
-- of its own (staged_count), by which they are told apart: same time, and an id that was given before.
create or replace function "laneway".count_published_v1(p_after bigint, p_to bigint, p_before bigint, p_exact boolean)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    with found as (
        select m.id, m.queue, m.kind, m.first_published_at from message m
        where m.id > p_after and m.id <= p_to and (m.part is null or m.part not in (select p.id from staged_part p))
        union all
        select d.id, d.queue, d.kind, d.first_published_at from dead d where d.id > p_after and d.id <= p_to
        union all
        select h.message_id, h.queue, h.kind, h.first_published_at from history h
        where h.message_id > p_after and h.message_id <= p_to and h.terminal
    ),
    staged as (
        update staged_count s set counted = true where not s.counted and s.xid < p_before
        returning s.queue, s.kind, s.at, s.n
    ),
    published as materialized (
        select p.queue, p.kind, p.at, sum(p.n) as n from (
            select f.queue, f.kind, date_bin('1 minute', f.first_published_at, 'epoch') as at, count(*) as n from found f
            where not exists (select from staged_count s where s.at = f.first_published_at and f.id <= s.last_id)
            group by 1, 2, 3
            union all
            select s.queue, s.kind, date_bin('1 minute', s.at, 'epoch'), s.n from staged s
        ) p
        group by p.queue, p.kind, p.at
    ),
    kept as (
        insert into live_count as k (queue, kind, live, dead)
        select p.queue, p.kind, sum(p.n), 0 from published p group by p.queue, p.kind
        on conflict (queue, kind) do update set live = k.live + excluded.live
    )
    insert into minute as m (span, at, queue, kind, published, exact)
    select s.span, date_trunc(s.unit, p.at, 'UTC'), p.queue, p.kind, sum(p.n), p_exact
    from published p cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
    group by 1, 2, 3, 4
    on conflict (span, at, queue, kind) do update
    set published = m.published + excluded.published, exact = m.exact and excluded.exact
$$;

-- Part of counting: up to p_limit history rows after a position and before p_before, added to the minutes and to
-- the kept counts. Answers how many rows there were, and the last one's position.
create or replace function "laneway".count_history_v1(
    p_xid bigint, p_id bigint, p_before bigint, p_limit integer, p_exact boolean,
    out counted bigint, out last_xid bigint, out last_id bigint
)
language plpgsql
as $$
#variable_conflict use_column
declare
    -- laneway.operations.WAIT_BOUNDS. A time of exactly a bound belongs below it, hence the microsecond.
    v_bounds constant interval[] := array['10 ms', '50 ms', '100 ms', '500 ms', '1 s', '5 s', '15 s', '60 s', '300 s',
        '1800 s', '3600 s', '21600 s'];
    v_least constant interval := '1 microsecond';
begin
    with part as materialized (
        select h.xid, h.id, h.queue, h.kind, h.outcome, h.dead,
            date_bin('1 minute', h.ended_at, 'epoch') as at, date_bin('1 minute', h.claimed_at, 'epoch') as claimed,
            case when h.claimed_at is not null then
                width_bucket(coalesce(h.started_at, h.claimed_at) - greatest(h.due, h.published_at) - v_least, v_bounds) end as wait,
            case when h.claimed_at is not null then
                width_bucket(h.ended_at - coalesce(h.started_at, h.claimed_at) - v_least, v_bounds) end as run
        from history h
        where h.xid >= p_xid and h.xid < p_before and (h.xid, h.id) > (p_xid, p_id)
        order by h.xid, h.id limit p_limit
    ),
    -- Few groups are left of these, so that the histograms are cheap.
    ended as materialized (
        select p.queue, p.kind, p.at, p.claimed, p.outcome, p.dead, p.wait, p.run, count(*) as n
        from part p where p.outcome <> 'stale'
        group by p.queue, p.kind, p.at, p.claimed, p.outcome, p.dead, p.wait, p.run
    ),
    kept as (
        insert into live_count as k (queue, kind, live, dead)
        select e.queue, e.kind, sum(f.live * e.n), sum(f.dead * e.n)
        from ended e cross join lateral count_effect_v1(e.outcome, e.dead) f
        group by e.queue, e.kind having sum(f.live * e.n) <> 0 or sum(f.dead * e.n) <> 0
        on conflict (queue, kind) do update set live = k.live + excluded.live, dead = k.dead + excluded.dead
    ),
    figure as (
        select e.queue, e.kind, e.at, 0::bigint as started,
            e.outcome, case when e.dead then e.n else 0 end as dead, e.wait, e.run, e.n
        from ended e
        union all
        select e.queue, e.kind, e.claimed, e.n, '', 0, null, null, 0 from ended e where e.claimed is not null
    ),
    added as (
        insert into minute as m (span, at, queue, kind, started, completed, retried, failed, expired, deferred,
            given_back, cancelled, lapsed, redriven, discarded, dead, waits, runs, exact)
        select s.span, date_trunc(s.unit, f.at, 'UTC'), f.queue, f.kind, sum(f.started),
            coalesce(sum(f.n) filter (where f.outcome = 'completed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'retried'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'failed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'expired'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'deferred'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'given_back'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'cancelled'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'lapsed'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'redriven'), 0),
            coalesce(sum(f.n) filter (where f.outcome = 'discarded'), 0),
            sum(f.dead),
            case when count(f.wait) > 0 then array[
                coalesce(sum(f.n) filter (where f.wait = 0), 0), coalesce(sum(f.n) filter (where f.wait = 1), 0),
                coalesce(sum(f.n) filter (where f.wait = 2), 0), coalesce(sum(f.n) filter (where f.wait = 3), 0),
                coalesce(sum(f.n) filter (where f.wait = 4), 0), coalesce(sum(f.n) filter (where f.wait = 5), 0),
                coalesce(sum(f.n) filter (where f.wait = 6), 0), coalesce(sum(f.n) filter (where f.wait = 7), 0),
                coalesce(sum(f.n) filter (where f.wait = 8), 0), coalesce(sum(f.n) filter (where f.wait = 9), 0),
                coalesce(sum(f.n) filter (where f.wait = 10), 0), coalesce(sum(f.n) filter (where f.wait = 11), 0),
                coalesce(sum(f.n) filter (where f.wait = 12), 0)]::bigint[] end,
            case when count(f.run) > 0 then array[
                coalesce(sum(f.n) filter (where f.run = 0), 0), coalesce(sum(f.n) filter (where f.run = 1), 0),
                coalesce(sum(f.n) filter (where f.run = 2), 0), coalesce(sum(f.n) filter (where f.run = 3), 0),
                coalesce(sum(f.n) filter (where f.run = 4), 0), coalesce(sum(f.n) filter (where f.run = 5), 0),
                coalesce(sum(f.n) filter (where f.run = 6), 0), coalesce(sum(f.n) filter (where f.run = 7), 0),
                coalesce(sum(f.n) filter (where f.run = 8), 0), coalesce(sum(f.n) filter (where f.run = 9), 0),
                coalesce(sum(f.n) filter (where f.run = 10), 0), coalesce(sum(f.n) filter (where f.run = 11), 0),
                coalesce(sum(f.n) filter (where f.run = 12), 0)]::bigint[] end,
            p_exact
        from figure f cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
        group by 1, 2, 3, 4
        on conflict (span, at, queue, kind) do update set
            started = m.started + excluded.started, completed = m.completed + excluded.completed,
            retried = m.retried + excluded.retried, failed = m.failed + excluded.failed,
            expired = m.expired + excluded.expired, deferred = m.deferred + excluded.deferred,
            given_back = m.given_back + excluded.given_back, cancelled = m.cancelled + excluded.cancelled,
            lapsed = m.lapsed + excluded.lapsed, redriven = m.redriven + excluded.redriven,
            discarded = m.discarded + excluded.discarded, dead = m.dead + excluded.dead,
            waits = add_counts_v1(m.waits, excluded.waits), runs = add_counts_v1(m.runs, excluded.runs),
            exact = m.exact and excluded.exact
    )
    select (select count(*) from part), l.xid, l.id into counted, last_xid, last_id
    from (select) one left join (select p.xid, p.id from part p order by p.xid desc, p.id desc limit 1) l on true;
end
$$;

-- Part of counting: what a history row says about the numbers of messages that have not ended and of dead letters.
--
-- completed, cancelled and lapsed end a message; a row that is marked dead (of an attempt that failed, was
-- retried or expired) makes a dead letter of it; redriven brings one back; discarded ends a dead letter. Deferred,
-- given back, retried and expired ones wait again; stale changes nothing.
create or replace function "laneway".count_effect_v1(p_outcome text, p_dead boolean)
returns table (live integer, dead integer)
language sql immutable
as $$
    select
        case when p_dead or p_outcome in ('completed', 'cancelled', 'lapsed') then -1
            when p_outcome = 'redriven' then 1 else 0 end,
        case when p_dead then 1 when p_outcome in ('redriven', 'discarded') then -1 else 0 end
$$;

-- Part of counting: the sums of two histograms, of which each may be null.
create or replace function "laneway".add_counts_v1(p_one bigint[], p_other bigint[])
returns bigint[]
language sql immutable
as $$
    select case
        when p_one is null then p_other
        when p_other is null then p_one
        else array(select a + b from unnest(p_one, p_other) with ordinality x(a, b, ordinal) order by ordinal) end
$$;

-- Part of counting: how many messages of each queue and kind have not ended, and the oldest due time of the queue,
-- noted with the minute and the hour of p_at; the last note of a minute stays.
create or replace function "laneway".count_depth_v1(p_at timestamptz, p_last timestamptz)
returns void
language plpgsql
as $$
begin
    -- Not before the next hour: until then these rows say that nothing is left.
    if date_trunc('hour', p_at, 'UTC') > date_trunc('hour', p_last, 'UTC') then
        delete from live_count k where k.live = 0 and k.dead = 0;
    end if;
    insert into minute as m (span, at, queue, kind, depth, oldest)
    select s.span, date_trunc(s.unit, p_at, 'UTC'), d.queue, d.kind, d.depth, d.oldest
    from (
        select k.queue, k.kind, greatest(k.live, 0) as depth, o.oldest
        from live_count k
        join (
            select q.queue, oldest_due_v1(q.queue, p_at) as oldest from (select distinct c.queue from live_count c) q
        ) o on o.queue = k.queue
        union all
        select '', '', 0, null
    ) d
    cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
    on conflict (span, at, queue, kind) do update set depth = excluded.depth, oldest = excluded.oldest;
end
$$;

-- The due time of the oldest message of a queue that waits and is due, as far as the first hundred turns of its
-- channels and its first wakes tell: a fixed number of rows.
create or replace function "laneway".oldest_due_v1(p_queue text, p_now timestamptz)
returns timestamptz
language sql stable
set enable_seqscan = off
as $$
    select min(x.due) from (
        (select w.due from "laneway".wake w where w.queue = p_queue and w.at <= p_now and w.n > 0 order by w.at limit 10)
        union all
        (select d.due from (
            (select t.due from "laneway".token t where t.queue = p_queue and t.turn is not null order by t.turn limit 100)
            union all
            (select t.due from "laneway".token t where t.queue = p_queue and t.turn is null and t.n > 0 limit 100)
        ) t cross join unnest(t.due) d(due))
    ) x
    where isfinite(x.due)
$$;
