-- Jobs of one frame: docs/decisions/0020-bulk-publish.md.
--
-- open job: from here on attempts may load for it, until unstage_v1, publish_parts_v1 or a sweep ends it. From the
-- time of this row on count the times that its messages say.
create or replace function "laneway".open_job_v1(p_job text)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    insert into staged (name, job) values (p_job, p_job);
$$;

-- The lock that says that the driver of a job lives.
create or replace function "laneway".job_lock_v1(p_job text)
returns bigint
language sql stable
set search_path = "laneway", pg_temp
as $$
    select hashtextextended(current_schema() || '.job.' || p_job, 0)
$$;

-- hold job: called again and again in one open transaction for as long as the driver lives. False: the job is
-- over. The transaction has no number and, between calls, no snapshot: it holds nothing back.
create or replace function "laneway".hold_job_v1(p_job text)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform pg_advisory_xact_lock(job_lock_v1(p_job));
    return exists (select from staged s where s.name = p_job);
end
$$;

-- Parts of a job: what one attempt of one task loads into the table of messages, in one transaction.
--
-- begin part: its number, the time from which its times count, an id below those of its messages, and the queues
-- that are claimed by kind. No row: the job is over.
--
-- Nobody waits for the disk at the end of a part. The commit of the job does, and what is written before it is on the
-- disk before it: after a crash of the server either the part is there, or the job finds that it is not.
create or replace function "laneway".begin_part_v1(p_job text)
returns table (part bigint, at timestamptz, first_id bigint, kind_queues text[])
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    perform server_life_v1();
    return query
    select nextval('staged_part_id'), s.created_at, nextval('message_id'), array(select k.queue from kind_queue k)
    from staged s where s.name = p_job;
end
$$;

-- end part: all its rows are loaded. The arrays say how many messages (p_counts) there are of each channel, kind,
-- priority and due time (null: they left it to its default); p_by_kind: they were loaded for claims by kind. False: the
-- job is over, so that the messages would never be published: roll back.
--
-- Locks: the job's row until the commit, so that whoever ends the job waits and finds the part.
create or replace function "laneway".end_part_v1(
    p_job text, p_part bigint, p_first_id bigint, p_keyed boolean,
    p_channel_ids uuid[], p_queues text[], p_channels text[], p_kinds text[], p_priorities smallint[],
    p_dues timestamptz[], p_by_kind boolean[], p_counts bigint[]
) returns boolean
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_due timestamptz;
begin
    perform from staged s where s.name = p_job for key share;
    if not found then
        return false;
    end if;
    if array_position(p_dues, null) is not null then
        select m.due into v_due from message m where m.id > p_first_id and m.part = p_part order by m.id limit 1;
        p_dues := array_replace(p_dues, null, v_due);
    end if;
    insert into staged_part (id, job, first_id, last_id, n, keyed)
    values (p_part, p_job, p_first_id, nextval('message_id'), (select sum(c) from unnest(p_counts) c), p_keyed);
    insert into staged_work (part, channel_ids, queues, channels, kinds, priorities, dues, by_kind, counts)
    values (p_part, p_channel_ids, p_queues, p_channels, p_kinds, p_priorities, p_dues, p_by_kind, p_counts);
    return true;
end
$$;

-- What some parts hold, by channel, kind, priority and due time: as their tasks noted it, or (p_count) counted from
-- the messages themselves, because some of them were taken away.
create or replace function "laneway".part_work_v1(p_parts bigint[], p_count boolean)
returns table (
    channel_id uuid, queue text, channel text, kind text, priority smallint, due timestamptz, by_kind boolean,
    id bigint, n bigint
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select w.channel_id, w.queue, w.channel, w.kind, w.priority, w.due, w.by_kind, p.first_id, w.n
    from staged_part p
    join staged_work a on a.part = p.id
    cross join unnest(a.channel_ids, a.queues, a.channels, a.kinds, a.priorities, a.dues, a.by_kind, a.counts)
        w(channel_id, queue, channel, kind, priority, due, by_kind, n)
    where p.id = any(p_parts) and not p_count
    union all
    select m.channel_id, m.queue, m.channel, m.kind, m.priority, m.due, m.by_kind is true, min(m.id), count(*)
    from message m
    where p_count and m.part = any(p_parts)
        and m.id > (select min(p.first_id) from staged_part p where p.id = any(p_parts))
        and m.id < (select max(p.last_id) from staged_part p where p.id = any(p_parts))
    group by m.channel_id, m.queue, m.channel, m.kind, m.priority, m.due, m.by_kind is true;
end
$$;

-- publish parts: the messages that a job's tasks have loaded are published, all or none, by deleting the rows of
-- their parts. What is done here is by channel, not by message, unless they have keys.
--
-- Keeps: what publish_v1 keeps, by the same rules: one wake per channel, priority and time; keys; closed and full
-- channels, which here refuse the whole job. A source is published once: a second call waits for the first,
-- then answers what that one did. Parts of attempts that are not named are left to sweep_staged_v1.
--
-- Locks: the job's row, so that no sweep ends it meanwhile.
create or replace function "laneway".publish_parts_v1(
    p_job text, p_parts bigint[], p_source text default null, p_now timestamptz default null,
    out published bigint, out existing bigint, out repeated boolean
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_at timestamptz;
    v_first bigint;
    v_last bigint;
    v_lost bigint[] := '{}';
    v_counted boolean;
    v_refused record;
begin
    published := 0;
    existing := 0;
    repeated := false;
    if p_source is not null then
        insert into publication (source, batch, published_at) values (p_source, 0, v_now) on conflict do nothing;
        if not found then
            repeated := true;
            select p.published, p.existing into published, existing
            from publication p where p.source = p_source and p.batch = 0;
            delete from staged s where s.name = p_job;
            return;
        end if;
    end if;
    select s.created_at into v_at from staged s where s.name = p_job for update;
    if not found or cardinality(p_parts) <> (select count(*) from staged_part p where p.id = any(p_parts) and p.job = p_job) then
        raise exception 'laneway: job % was given up, its driver seemed to be gone', p_job
            using errcode = 'PNS01', hint = 'Run the job again.';
    end if;
    select min(p.first_id), max(p.last_id), coalesce(sum(p.n), 0) into v_first, v_last, published
    from staged_part p where p.id = any(p_parts);

    if exists (select from staged_part p where p.id = any(p_parts) and p.keyed) then
        v_lost := reserve_part_keys_v1(p_parts, v_first, v_last, v_now);
        existing := cardinality(v_lost);
        published := published - existing;
        if existing > 0 then
            delete from message m where m.id = any(v_lost);
        end if;
    end if;
    v_counted := existing > 0;

    if exists (select from channel c where c.backlog is not null or c.closing) then
        select r.queue, r.channel, r.status, sum(r.refused) over () as n into v_refused
        from (
            select c.queue, c.name as channel, case when c.closing then 'closed' else 'full' end as status,
                case when c.closing then w.n else w.n - greatest(c.backlog - (select count(*) from (
                    select from message m where m.channel_id = c.id
                        and (m.part is null or m.part not in (select p.id from staged_part p)) limit c.backlog) m), 0)
                end as refused
            from (select x.channel_id, sum(x.n) as n from part_work_v1(p_parts, v_counted) x group by x.channel_id) w
            join channel c on c.id = w.channel_id and (c.backlog is not null or c.closing)
        ) r
        where r.refused > 0 order by r.queue, r.channel limit 1;
        if found then
            raise exception 'channel % of queue % is %, so % messages would be refused: nothing of the job was published',
                v_refused.channel, v_refused.queue, v_refused.status, v_refused.n
                using errcode = case v_refused.status when 'full' then 'PNF01' else 'PNC01' end;
        end if;
    end if;

    -- The position need not be a message's: none of them lies before it. '-': they were loaded before their queue
    -- was claimed by kind, and whoever consumes the wake moves them (claim_move_v1).
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select w.at, w.channel_id, min(w.due), min(w.id), sum(w.n), w.priority, w.queue, w.channel, w.lane
    from (
        select w.*, greatest(w.due, v_now) as at,
            case when w.by_kind then '=' || w.kind
                when w.queue = any(array(select k.queue from kind_queue k)) then '-' else '' end as lane
        from part_work_v1(p_parts, v_counted) w
    ) w
    group by w.at, w.channel_id, w.priority, w.queue, w.channel, w.lane;
    insert into staged_count (at, last_id, queue, kind, n)
    select v_at, v_last, w.queue, w.kind, sum(w.n) from part_work_v1(p_parts, v_counted) w group by w.queue, w.kind;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['published'], array(
            select m.id from message m where m.id > v_first and m.id < v_last and m.part = any(p_parts) order by m.id), v_now);
    end if;
    if published > 0 and exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array(
            select distinct w.queue from part_work_v1(p_parts, v_counted) w
            where w.due < v_now + interval '2 seconds'), v_now);
    end if;
    if p_source is not null then
        update publication p set published = publish_parts_v1.published, existing = publish_parts_v1.existing
        where p.source = p_source and p.batch = 0;
    end if;
    delete from staged_work w where w.part = any(p_parts);
    delete from staged_part p where p.id = any(p_parts);
    delete from staged s where s.name = p_job;
end
$$;

-- Part of publish parts: take the keys of all messages as if none of them were in use, the usual case, at less than half
-- of the cost. Fails if one is; also if one belongs to a transaction that has not ended, for which only
-- reserve_part_keys_v1 knows whether to wait. Answers how many keys there were.
create or replace function "laneway".take_part_keys_v1(p_parts bigint[], p_first bigint, p_last bigint)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set work_mem = '64MB'
set lock_timeout = '100ms'
as $$
declare
    v_taken bigint;
begin
    insert into dedupe (queue, key, message_id)
    select distinct on (m.queue, m.key) m.queue, m.key, m.id
    from message m
    where m.id > p_first and m.id < p_last and m.part = any(p_parts) and m.key is not null
    order by m.queue, m.key, m.id;
    get diagnostics v_taken = row_count;
    return v_taken;
end
$$;

-- Part of publish parts: reserve the keys of all messages at once, and answer the ids of those that found theirs in
-- use. Of several messages with one key the first gets it.
--
-- Keeps: what reserve_keys_v1 keeps. A key in use is read, never locked; keys are taken in sorted order. It is
-- decided in one statement: each message has its key, or another one has it.
create or replace function "laneway".reserve_part_keys_v1(p_parts bigint[], p_first bigint, p_last bigint, p_now timestamptz)
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_lost bigint[];
    v_open bigint;
    v_taken bigint;
begin
    for v_try in 1 .. 20 loop
        if exists (select from dedupe d where d.expires_at <= p_now) then
            delete from dedupe d where (d.queue, d.key) in (
                select k.queue, k.key from dedupe k
                where k.expires_at <= p_now and exists (
                    select from message m where m.id > p_first and m.id < p_last and m.part = any(p_parts)
                        and m.queue = k.queue and m.key = k.key)
                order by k.queue, k.key for update of k);
        end if;
        v_taken := null;
        if v_try = 1 then
            begin
                v_taken := take_part_keys_v1(p_parts, p_first, p_last);
            exception
                when unique_violation or lock_not_available then null;
            end;
        end if;
        if v_taken is null then
            -- Ours if the insert succeeds. It waits for another publisher of the same key to end.
            insert into dedupe (queue, key, message_id)
            select distinct on (m.queue, m.key) m.queue, m.key, m.id
            from message m
            where m.id > p_first and m.id < p_last and m.part = any(p_parts) and m.key is not null
                and not exists (select from dedupe d where d.queue = m.queue and d.key = m.key)
            order by m.queue, m.key, m.id
            on conflict (queue, key) do nothing;
            get diagnostics v_taken = row_count;
        end if;
        -- All of them got their keys, the usual case.
        if v_taken = (select count(*) from message m
            where m.id > p_first and m.id < p_last and m.part = any(p_parts) and m.key is not null) then
            return '{}';
        end if;
        select count(*) filter (where d.message_id is null or d.expires_at <= p_now),
            coalesce(array_agg(m.id) filter (where d.message_id <> m.id), '{}')
        into v_open, v_lost
        from message m left join dedupe d on d.queue = m.queue and d.key = m.key
        where m.id > p_first and m.id < p_last and m.part = any(p_parts) and m.key is not null;
        if v_open = 0 then
            return v_lost;
        end if;
    end loop;
    raise exception 'laneway: a publish key changed hands too often to be decided'
        using errcode = 'serialization_failure', hint = 'Publish again.';
end
$$;

-- Part of upkeep, and of every job's end: end the jobs whose drivers are gone, and delete the messages of parts
-- without a job: nobody has ever seen them. At most p_limit of them: call it until it answers fewer.
--
-- Keeps: a job is ended only if nobody holds its lock (hold_job_v1) and nobody is about to commit it or a part of
-- it; from then on nobody can. p_age: a new job gets so long until somebody must hold its lock, and so does every job
-- after a restart of the server.
create or replace function "laneway".sweep_staged_v1(p_limit integer default 10000, p_age interval default '1 minute')
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_job text;
    v_part staged_part;
    v_ids bigint[];
    v_done bigint := 0;
begin
    for v_job in
        select s.name from staged s
        where s.name = s.job and greatest(s.created_at, pg_postmaster_start_time()) < clock_timestamp() - p_age
        order by s.name limit 100
    loop
        if pg_try_advisory_xact_lock(job_lock_v1(v_job)) then
            perform from staged s where s.name = v_job for update skip locked;
            if found then
                delete from staged s where s.name = v_job;
                v_done := v_done + 1;
            end if;
        end if;
    end loop;
    for v_part in
        select p.* from staged_part p where not exists (select from staged s where s.name = p.job)
        order by p.id limit 100 for update of p skip locked
    loop
        v_ids := array(
            select m.id from message m
            where m.id > v_part.first_id and m.id < v_part.last_id and m.part = v_part.id
            order by m.id limit p_limit - v_done);
        delete from message m where m.id = any(v_ids);
        v_done := v_done + cardinality(v_ids);
        if v_done >= p_limit then
            -- The next call goes on from here, not over what was deleted.
            update staged_part p set first_id = v_ids[cardinality(v_ids)] where p.id = v_part.id and cardinality(v_ids) > 0;
            return v_done;
        end if;
        delete from staged_work w where w.part = v_part.id;
        delete from staged_part p where p.id = v_part.id;
        v_done := v_done + 1;
    end loop;
    return v_done;
end
$$;
