-- Pauses of queues and kinds, the audit, bulk operations on dead letters.

-- A queue, or one kind of it, that starts nothing until a time (null: until it is resumed). It has no
-- index: while nothing is paused the table has no pages, so that the look of a claim reads none.
create table "laneway".pause (
    queue text collate "C" not null,
    kind text collate "C",
    until timestamptz,
    since timestamptz not null,
    actor text not null,
    reason text not null
);

-- What operators did, in the transaction in which they did it.
create table "laneway".audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    source text not null,
    action text not null,
    target jsonb not null,
    affected bigint,
    check (length(actor) <= 1000 and length(source) <= 1000 and length(action) <= 1000)
);

-- Bulk redrives and discards. died_at and letter are the position of the last dead letter that was
-- looked at; only letters that died until started_at are taken.
create table "laneway".operation (
    id bigint generated always as identity primary key,
    action text not null check (action in ('redrive', 'discard')),
    wanted jsonb not null,
    options jsonb not null,
    total bigint,
    done bigint not null default 0,
    state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
    actor text not null check (length(actor) <= 1000),
    started_at timestamptz not null,
    ended_at timestamptz,
    error text,
    died_at timestamptz not null default '-infinity',
    letter bigint not null default 0
);
create index operation_running on "laneway".operation (id) where state = 'running';

-- pause of a queue, or of one kind of it: nothing of it starts, for p_length if there is one; publishing
-- goes on. Replaces an earlier pause of the same.
--
-- Keeps: once this is committed, no claim starts anything of the queue. Every claim shares a lock on its
-- queues before it looks for pauses, so this waits for those that looked before; later ones see it.
create or replace function "laneway".pause_queue_v1(
    p_queue text, p_kind text, p_length interval, p_actor text, p_reason text, p_now timestamptz default null
) returns setof "laneway".pause
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
as $$
declare
    v_now timestamptz;
begin
    perform check_names_v1('queue', array[p_queue]), check_names_v1('kind', array[p_kind], true),
        check_lengths_v1('duration', array[p_length]), check_texts_v1('actor', array[p_actor]), check_texts_v1('reason', array[p_reason]);
    perform pg_advisory_xact_lock(hashtextextended(p_queue, 'pause'::regclass::oid::bigint));
    v_now := write_time_v1(p_now);
    delete from pause p where p.queue = p_queue and p.kind is not distinct from p_kind;
    return query
    insert into pause (queue, kind, until, since, actor, reason)
    values (p_queue, p_kind, v_now + p_length, v_now, p_actor, p_reason)
    returning *;
end
$$;

-- resume of a queue, or of one kind of it: ends its pause, and wakes sleeping workers. Answers whether it
-- was paused.
create or replace function "laneway".resume_queue_v1(p_queue text, p_kind text, p_now timestamptz default null)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_paused boolean;
begin
    perform check_names_v1('queue', array[p_queue]), check_names_v1('kind', array[p_kind], true);
    with gone as (
        delete from pause p where p.queue = p_queue and p.kind is not distinct from p_kind returning p.until
    )
    select count(*) > 0 into v_paused from gone g where g.until is null or g.until > v_now;
    perform notify_workers_v1(array[p_queue], v_now);
    return v_paused;
end
$$;

-- set fairness: from now on the queue's channels take turns by the time that handlers take (p_turn: seconds by which one may
-- get ahead of others), or by starts (null). What runs now is not charged.
--
-- Locks: an advisory lock for the queue, which only this takes. Claims that run meanwhile go by what they have read.
create or replace function "laneway".set_fairness_v1(
    p_queue text, p_turn double precision, p_now timestamptz default null
) returns setof "laneway".fair_queue
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
as $$
declare
    v_now timestamptz;
    v_old fair_queue;
begin
    perform check_names_v1('queue', array[p_queue]), check_numbers_v1('turn', array[p_turn], 0.001, 3600);
    perform pg_advisory_xact_lock(hashtextextended(p_queue, 'fair_queue'::regclass::oid::bigint));
    v_now := write_time_v1(p_now);
    delete from fair_queue f where f.queue = p_queue returning f.* into v_old;
    if p_turn is not null then
        return query
        insert into fair_queue (queue, turn, reached, since)
        values (p_queue, p_turn, coalesce(v_old.reached, 0), coalesce(v_old.since, v_now))
        returning *;
    end if;
    perform notify_workers_v1(array[p_queue], v_now);
end
$$;

-- Those of some channels that wait because they have had more worker time than others, in a queue that is fair by time,
-- each with how many seconds more.
create or replace function "laneway".time_ahead_v1(p_queue text, p_channels text[], p_now timestamptz default null)
returns table (channel text, ahead double precision)
language sql stable
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
    select x.name, t.booked - r.reached
    from fair_queue f
    cross join lateral (
        select coalesce((
            select k.booked from token k
            where k.queue = f.queue and k.turn <= coalesce(p_now, clock_timestamp()) and k.booked >= f.reached - 100 * f.turn
            order by k.booked limit 1), f.reached) as reached
    ) r
    cross join unnest(p_channels) x(name)
    cross join lateral (
        select k.booked, k.since from token k where k.channel_id = channel_id_v1(p_queue, x.name) order by k.version desc limit 1
    ) t
    where f.queue = p_queue and t.since >= f.since and t.booked >= r.reached + f.turn
$$;

-- run now: messages that are scheduled for later become due now.
--
-- Keeps: the order of a channel (priority, due, id), with the new due time. A message is claimed, cancelled
-- or made due, one after the other: this locks the channel, as these do. Locks channel rows in id order.
create or replace function "laneway".run_now_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_ids bigint[];
    v_queues text[];
begin
    perform lock_channels_v1(array_agg(x.queue), array_agg(x.channel))
    from (select distinct m.queue, m.channel from message m where m.id = any(p_ids)) x;
    -- Read once the channels are locked: later than the time of every claim that owned them.
    v_now := write_time_v1(p_now);
    with later as materialized (
        select m.id, m.channel_id, m.due, m.priority, m.queue, m.channel,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from message m
        where m.id = any(p_ids) and m.due > v_now and (m.part is null or m.part not in (select p.id from staged_part p))
            and not exists (select from lease l where l.message_id = m.id offset 0)
            -- What waits behind a running message of its key (replace_v1) stays there.
            and not exists (select from dedupe k
                where k.queue = m.queue and k.key = m.key and k.message_id = m.id and k.behind is not null offset 0)
    ),
    moved as (
        update message m set due = v_now from later l where m.id = l.id returning m.id
    ),
    -- Its own wake counts it at the old time: one fewer just after that, and one more now.
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select l.due + interval '1 microsecond', l.channel_id, l.due, l.id, -1, l.priority, l.queue, l.channel, l.lane
        from later l
        union all
        select v_now, l.channel_id, v_now, l.id, 1, l.priority, l.queue, l.channel, l.lane from later l
    )
    select coalesce(array_agg(l.id), '{}'), array_agg(l.queue) into v_ids, v_queues
    from later l join moved m on m.id = l.id;
    perform notify_workers_v1(v_queues, v_now);
    return query
    select x.id, case
        when x.id = any(v_ids) then 'due'
        when exists (select from lease l where l.message_id = x.id) then 'leased'
        when exists (select from message m where m.id = x.id and (m.part is null or m.part not in (select p.id from staged_part p))) then 'waiting'
        when exists (select from dead d where d.id = x.id) then 'dead'
        else 'absent' end
    from (select distinct u.id from unnest(p_ids) u(id)) x;
end
$$;

-- step of a bulk operation: redrive or discard the next p_limit dead letters of a running one (of the
-- first if p_id is null), and note how far it is.
--
-- Keeps: the letters and the note are one transaction, so whoever goes on after a crash begins behind them.
-- Only letters that died until the operation began are taken. Locks the operation, skipping those that
-- others are at, then dead letters in id order. Looks at 5 * p_limit letters at most, or p_limit if all of them
-- match. Answers the operation, or nothing.
create or replace function "laneway".step_operation_v1(p_id bigint, p_limit integer, p_now timestamptz default null)
returns setof "laneway".operation
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    v_operation operation;
    v_queue text;
    v_channel text;
    v_kind text;
    v_reason text;
    v_error_type text;
    v_since timestamptz;
    v_until timestamptz;
    v_most integer;
    v_looked integer;
    v_all bigint[];
    v_times timestamptz[];
    v_last integer;
    v_ids bigint[];
    v_done bigint;
    v_ended boolean;
begin
    perform check_numbers_v1('limit', array[coalesce(p_limit, 0)], 1, 10000);
    select o.* into v_operation from operation o
    where o.state = 'running' and (p_id is null or o.id = p_id)
    order by o.id limit 1 for update skip locked;
    if not found then
        return;
    end if;
    v_queue := v_operation.wanted ->> 'queue';
    v_channel := v_operation.wanted ->> 'channel';
    v_kind := v_operation.wanted ->> 'kind';
    v_reason := v_operation.wanted ->> 'reason';
    v_error_type := v_operation.wanted ->> 'error_type';
    v_since := coalesce((v_operation.wanted ->> 'since')::timestamptz, '-infinity');
    v_until := coalesce((v_operation.wanted ->> 'until')::timestamptz, 'infinity');
    -- A step that looks for a few among a million is as short as any other.
    v_most := case when coalesce(v_channel, v_kind, v_reason, v_error_type) is null then p_limit else 5 * p_limit end;
    if v_queue is null then
        select count(*), array_agg(x.id order by x.died_at, x.id), array_agg(x.died_at order by x.died_at, x.id),
            array_agg(x.id order by x.died_at, x.id) filter (where
            (v_channel is null or x.channel = v_channel) and (v_kind is null or x.kind = v_kind)
            and (v_reason is null or x.reason = v_reason) and (v_error_type is null or x.error_type = v_error_type))
        into v_looked, v_all, v_times, v_ids
        from (
            select d.id, d.died_at, d.channel, d.kind, d.reason, d.error_type from dead d
            where d.died_at >= v_since and d.died_at < v_until and d.died_at <= v_operation.started_at
                and (d.died_at, d.id) > (v_operation.died_at, v_operation.letter)
            order by d.died_at, d.id limit v_most
        ) x;
    else
        select count(*), array_agg(x.id order by x.died_at, x.id), array_agg(x.died_at order by x.died_at, x.id),
            array_agg(x.id order by x.died_at, x.id) filter (where
            (v_channel is null or x.channel = v_channel) and (v_kind is null or x.kind = v_kind)
            and (v_reason is null or x.reason = v_reason) and (v_error_type is null or x.error_type = v_error_type))
        into v_looked, v_all, v_times, v_ids
        from (
            select d.id, d.died_at, d.channel, d.kind, d.reason, d.error_type from dead d
            where d.queue = v_queue
                and d.died_at >= v_since and d.died_at < v_until and d.died_at <= v_operation.started_at
                and (d.died_at, d.id) > (v_operation.died_at, v_operation.letter)
            order by d.died_at, d.id limit v_most
        ) x;
    end if;
    v_ids := v_ids[1:p_limit];
    v_last := v_looked;
    if cardinality(v_ids) = p_limit then
        v_last := array_position(v_all, v_ids[p_limit]);
    end if;
    v_ended := v_looked < v_most and v_last = v_looked;
    -- As it was found: somebody else may have taken that letter since.
    v_operation.died_at := coalesce(v_times[v_last], v_operation.died_at);
    v_operation.letter := coalesce(v_all[v_last], v_operation.letter);
    if v_ids is not null then
        if v_operation.action = 'redrive' then
            v_done := (select count(*) from redrive_v1(
                v_ids, (v_operation.options ->> 'max_attempts')::integer,
                make_interval(secs => coalesce((v_operation.options ->> 'delay')::double precision, 0)), p_now));
        else
            v_done := (select count(*) from discard_v1(v_ids, p_now));
        end if;
    end if;
    return query
    update operation o set
        -- A letter may have died just before the operation began and have been seen just after.
        total = o.total + greatest(0, o.done + coalesce(v_done, 0) - o.total),
        done = o.done + coalesce(v_done, 0), died_at = v_operation.died_at, letter = v_operation.letter,
        state = case when v_ended then 'done' else o.state end,
        ended_at = case when v_ended then time_v1(p_now) end
    where o.id = v_operation.id
    returning o.*;
end
$$;

-- Part of claim, while a kind is paused: what the claim took of it is given back, uncounted, in the claim's transaction; a
-- crash costs no attempt. Answers the others, as claim_v1 does.
create or replace function "laneway".claim_put_back_v1(
    p_queues text[], p_limit integer, p_lease interval, p_worker text, p_quantum integer,
    p_turn_floor timestamptz, p_wake_floor timestamptz, p_open_xids bigint[], p_open_turns timestamptz[],
    p_open_wakes timestamptz[], p_contended boolean, p_kinds text[], p_now timestamptz, p_life bigint
) returns setof "laneway".claimed_v1
language plpgsql
as $$
declare
    v_rows "laneway".claimed_v1[] := array(
        select c from claim_v1(
            p_queues, p_limit, p_lease, p_worker, p_quantum, p_turn_floor, p_wake_floor, p_open_xids, p_open_turns,
            p_open_wakes, p_contended, p_kinds, p_now, false, p_life) c);
    v_end "laneway".claimed_v1 := v_rows[cardinality(v_rows)];
    v_ids bigint[];
    v_fences bigint[];
    v_delays interval[];
begin
    select array_agg(r.id), array_agg(r.fence), array_agg((p.pause ->> 2)::double precision * interval '1 second')
    into v_ids, v_fences, v_delays
    from unnest(v_rows) r join jsonb_array_elements(v_end.headers) p(pause)
        on r.queue = p.pause ->> 0 and r.kind = p.pause ->> 1;
    if v_ids is not null then
        perform give_back_v1(v_ids, v_fences, v_delays, p_now);
        if cardinality(v_ids) = cardinality(v_rows) - 1 then
            -- Behind these there may be others.
            v_end.answer := 'busy';
            v_end.look_again := v_end.claimed_at;
            v_end.claimed_at := null;
            v_end.until := null;
        end if;
    end if;
    return query select r.* from unnest(v_rows) r where r.id is not null and r.id <> all(coalesce(v_ids, '{}'));
    v_end.headers := null;
    return next v_end;
end
$$;

-- Part of upkeep: delete old rows of the audit, and pauses that have ended, of queues, kinds and channels.
-- A pause that has ended holds nobody up; it is only removed from the list. Locks channels, skipping those
-- that others hold.
create or replace function "laneway".control_cleanup_v1(p_limit integer, p_now timestamptz)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_kept timestamptz;
    v_done bigint := 0;
    v_count bigint;
begin
    if exists (select from pause p where p.until <= v_now) then
        delete from pause p where p.until <= v_now;
        get diagnostics v_done = row_count;
    end if;
    if exists (select from channel c where c.paused_until <= v_now) then
        update channel c set paused = false, paused_until = null, throttled = false
        where c.id = any(array(
            select k.id from channel k where k.paused_until <= v_now
            order by k.paused_until limit p_limit for no key update skip locked));
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    -- Ids follow the time, except for those of long transactions.
    v_kept := v_now - (select s.audit_days from setting s) * interval '1 day';
    if (select a.at < v_kept from audit a order by a.id limit 1) then
        delete from audit a where a.id = any(array(
            select k.id from (select o.id, o.at from audit o order by o.id limit p_limit) k where k.at < v_kept));
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    return v_done;
end
$$;

-- Queues and kinds that are paused now.
create view "laneway".pause_v1 as
select p.queue, p.kind, p.until, p.since, p.actor, p.reason
from "laneway".pause p
where p.until is null or p.until > clock_timestamp();
