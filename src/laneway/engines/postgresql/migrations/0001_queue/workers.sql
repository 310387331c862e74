-- Worker processes, and requests to cancel running work.

-- One row per worker process, rewritten by it every 10 seconds. name: what its leases and the history
-- call it; several processes may share one. kinds: what it handles, {} if every kind.
create table "laneway".worker (
    id text collate "C" primary key,
    name text collate "C" not null,
    host text not null,
    pid integer not null,
    version text not null,
    queues text[] not null,
    kinds text[] not null,
    slots integer not null,
    used integer not null,
    stopping boolean not null,
    started_at timestamptz not null,
    seen_at timestamptz not null
) with (fillfactor = 50);
create index worker_seen on "laneway".worker (seen_at);

-- The holder of this lease is to stop its handler. It is told when it next says that it is alive; the
-- next holder has another fence. Upkeep deletes what has no lease.
create table "laneway".cancel_request (
    message_id bigint not null,
    fence bigint not null,
    worker text collate "C" not null,
    requested_at timestamptz not null,
    primary key (message_id, fence)
);
create index cancel_request_worker on "laneway".cancel_request (worker);

-- worker_seen: a worker process is alive, and what it does now.
--
-- Keeps: one row a process. Locks only that row. Answers the leases under its name whose handlers are to
-- stop; again each time until they have ended, so that an answer that got lost does no harm.
create or replace function "laneway".worker_seen_v1(
    p_id text, p_name text, p_host text, p_pid integer, p_version text, p_queues text[], p_kinds text[],
    p_slots integer, p_used integer, p_stopping boolean, p_now timestamptz default null
) returns table (message_id bigint, fence bigint)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
begin
    perform check_names_v1('worker', array[p_id, p_name]), check_names_v1('host', array[p_host]), check_names_v1('version', array[p_version]),
        check_names_v1('queue', p_queues), check_names_v1('kind', p_kinds, true),
        check_numbers_v1('number of queues and kinds', array[cardinality(p_queues), cardinality(p_kinds)], 0, 10000),
        check_numbers_v1('number of slots', array[p_slots, p_used], 0);
    insert into worker as w (id, name, host, pid, version, queues, kinds, slots, used, stopping, started_at, seen_at)
    values (p_id, p_name, p_host, p_pid, p_version, p_queues, p_kinds, p_slots, p_used, p_stopping, v_now, v_now)
    on conflict (id) do update set slots = p_slots, used = p_used, stopping = p_stopping, seen_at = v_now;
    return query
    select r.message_id, r.fence from cancel_request r
    where r.worker = p_name
        and exists (select from lease l where l.message_id = r.message_id and l.fence = r.fence);
end
$$;

-- worker_gone: the process stopped as it should.
create or replace function "laneway".worker_gone_v1(p_id text) returns void
language sql
set search_path = "laneway", pg_temp
as $$
    delete from worker w where w.id = p_id
$$;

-- cancel_running: cancel, and for leased messages a request to their holders.
--
-- Keeps: a request names a fence, so it never reaches a later holder. A lease that ends between the two
-- steps (its message waits again, or has ended) is looked at again. Answers as cancel does, with
-- 'requested' instead of 'leased'; 'leased' is left only for a message that changes hands all the time.
create or replace function "laneway".cancel_running_v1(p_ids bigint[], p_now timestamptz default null)
returns table (id bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_left bigint[] := p_ids;
    v_leased bigint[];
    v_asked bigint[];
    v_nodes bigint[];
    v_ended bigint[] := '{}';
begin
    for v_try in 1..5 loop
        v_leased := '{}';
        for id, status, v_nodes in select c.id, c.status, c.nodes from cancel_waiting_v1(v_left, p_now) c loop
            if id is null then
                v_ended := v_ended || v_nodes;
            elsif status = 'leased' then
                v_leased := v_leased || id;
            else
                return next;
            end if;
        end loop;
        exit when v_leased = '{}';
        -- The message of a lease that somebody is ending now stays locked until then: not waited for.
        with held as (
            select l.message_id, l.fence, l.worker from lease l where l.message_id = any(v_leased)
        ),
        asked as (
            insert into cancel_request (message_id, fence, worker, requested_at)
            select h.message_id, h.fence, h.worker, time_v1(p_now) from held h
            on conflict (message_id, fence) do nothing
        )
        select coalesce(array_agg(h.message_id), '{}') into v_asked from held h;
        return query select x.id, 'requested' from unnest(v_asked) x(id);
        v_left := array(select x.id from unnest(v_leased) x(id) where x.id <> all(v_asked));
        v_leased := v_left;
        exit when v_left = '{}';
    end loop;
    return query select x.id, 'leased' from unnest(v_leased) x(id);
    -- Last, and once: whoever has nodes locked waits for nothing else.
    if v_ended <> '{}' then
        perform end_nodes_v1(v_ended, null, null, 'cancelled', write_time_v1(p_now));
    end if;
end
$$;

-- diagnose: how many leases ran out longer than p_late ago, a thousand at most, and since when. The oldest, in their
-- order: a view that joins their messages would read all of them.
create or replace function "laneway".look_expired_v1(p_late interval, p_now timestamptz default null)
returns table (expired bigint, since timestamptz)
language sql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*), min(l.until)
    from (
        select k.until from lease k
        where k.until < (select coalesce(p_now, clock_timestamp()) - p_late) order by k.until limit 1000
    ) l
$$;

-- Part of diagnose: queues with work that could start, since when, and which kinds wait at their heads.
--
-- Bounded whatever waits: of 200 queues the oldest turn and wake, and the messages of the oldest 100 wakes
-- and 20 channels. claimed: when a message of the queue was last claimed, of the 200 leases that end last.
-- kinds: of messages published a minute ago or earlier; what is put back because nobody handles it is due
-- again soon. Queues that are paused are left out, and paused kinds.
create or replace function "laneway".waiting_work_v1(p_now timestamptz default null)
returns table (queue text, since timestamptz, claimed timestamptz, kinds text[])
language plpgsql
stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queue text := '';
    -- When a message of each queue was claimed last, as far as the newest leases tell.
    v_claimed jsonb := (
        select jsonb_object_agg(x.queue, x.at)
        from (
            select m.queue, max(l.claimed_at) as at
            from (select k.message_id, k.claimed_at from lease k order by k.until desc limit 200) l
            cross join lateral (select k.queue from message k where k.id = l.message_id offset 0) m
            group by m.queue
        ) x);
begin
    for v_number in 1..200 loop
        select least(
            (select w.queue from wake w where w.queue > v_queue order by w.queue limit 1),
            (select t.queue from token t where t.queue > v_queue and t.turn is not null order by t.queue limit 1))
        into v_queue;
        exit when v_queue is null;
        queue := v_queue;
        if exists (
            select from pause p where p.queue = v_queue and p.kind is null and (p.until is null or p.until > v_now)
        ) then
            continue;
        end if;
        since := least(
            (select w.at from wake w where w.queue = v_queue and w.at <= v_now and w.n > 0 order by w.at limit 1),
            (select t.turn from token t where t.queue = v_queue and t.turn <= v_now order by t.turn limit 1));
        claimed := (v_claimed ->> v_queue)::timestamptz;
        kinds := array(
            select distinct m.kind
            from (
                select w.message_id as id from (
                    select k.message_id from wake k where k.queue = v_queue and k.at <= v_now + interval '1 minute'
                    order by k.at limit 100) w
                union
                select h.id from (
                    select t.channel_id from token t
                    where t.queue = v_queue and t.turn <= v_now order by t.turn limit 20) c
                cross join lateral (
                    select m.id from message m where m.channel_id = c.channel_id and (m.part is null or m.part not in (select p.id from staged_part p))
                    order by m.priority, m.due, m.id limit 5) h
                union
                -- Where the queue is claimed by kind, also what waits there behind others.
                select h.id from (
                    select t.channel_id, t.lanes from token t
                    where t.queue = v_queue and t.turn <= v_now order by t.turn limit 20) c
                cross join lateral (select distinct substr(l, 2) as kind from unnest(c.lanes) l where l like '=%') l
                cross join lateral (
                    select m.id from message m where m.by_kind and m.channel_id = c.channel_id and m.kind = l.kind
                    order by m.priority, m.due, m.id limit 5) h
            ) x
            cross join lateral (select k.kind, k.published_at from message k where k.id = x.id offset 0) m
            where m.published_at < v_now - interval '1 minute'
                and not exists (select from lease l where l.message_id = x.id)
                and not exists (
                    select from pause p where p.queue = v_queue and p.kind = m.kind
                        and (p.until is null or p.until > v_now)));
        return next;
    end loop;
end
$$;

-- Part of upkeep: forget workers that vanished a day ago, and requests whose lease has ended.
create or replace function "laneway".cleanup_workers_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_done bigint := 0;
    v_count bigint;
begin
    if exists (select from worker w where w.seen_at < v_now - interval '1 day') then
        delete from worker w where w.id = any(array(
            select k.id from worker k where k.seen_at < v_now - interval '1 day' order by k.seen_at limit p_limit
            for update skip locked));
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    if exists (select from cancel_request) then
        -- It reads past those whose leases are held: what runs and was asked to stop.
        delete from cancel_request r where r.ctid = any(array(
            select k.ctid from cancel_request k
            where not exists (select from lease l where l.message_id = k.message_id and l.fence = k.fence offset 0)
            limit p_limit));
        get diagnostics v_count = row_count;
        v_done := v_done + v_count;
    end if;
    return v_done;
end
$$;

-- Workers that were not seen for 30 seconds have vanished: killed, frozen, or cut off.
create view "laneway".worker_v1 as
select w.id, w.name, w.host, w.pid, w.version, w.queues, w.kinds, w.slots, w.used, w.started_at, w.seen_at,
    case when w.seen_at < clock_timestamp() - interval '30 seconds' then 'vanished'
        when w.stopping then 'stopping' else 'running' end as state
from "laneway".worker w;
