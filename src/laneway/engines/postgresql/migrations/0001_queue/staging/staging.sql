-- Batches of a stream: staging tables, moved by the commit.
--
-- stage: a new table for one attempt of one task, to be filled in the same transaction.
--
-- Keeps: nobody sees the table before it is complete, and an attempt that dies leaves nothing.
-- Unlogged: a crash of the server empties it, and publish_staged_v1 then misses its rows.
create or replace function "laneway".stage_v1(p_job text, p_attempt bigint)
returns text
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_name text := format('staged_%s_%s', left(md5(p_job), 16), p_attempt);
begin
    perform server_life_v1();
    execute format('create unlogged table %I (like staged_row including defaults)', v_name);
    -- Not compressed: the rows are about to be moved anyway.
    execute format('alter table %I alter column payload set storage external', v_name);
    insert into staged (name, job) values (v_name, p_job);
    return v_name;
end
$$;

-- publish staged: the rows of the named staging tables become messages, all or none.
--
-- Keeps: what publish_v1 keeps, by the same rules: one wake per channel, priority and time; keys; closed
-- and full channels, which here refuse the whole job. A (source, batch) is published once: a second
-- call waits for the first, then answers what that one did. So is one of which a later batch was
-- published: batches come in order, whatever checkpoint they restart from. Ids were given when the rows were staged;
-- the order inside a channel is by due time first, which is read here.
--
-- p_counts: how many rows each table must hold; the job fails if the server lost some in between.
create or replace function "laneway".publish_staged_v1(
    p_job text,
    p_names text[],
    p_counts bigint[],
    p_source text,
    p_batch bigint,
    p_kind text default '',
    p_content_type text default 'application/octet-stream',
    p_priority smallint default 0,
    p_max_attempts integer default 20,
    p_now timestamptz default null,
    out published bigint, out existing bigint, out repeated boolean
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_all text;
    v_ids bigint[];
    v_queues text[];
    v_channels text[];
    v_keys text[];
    v_status text[];
    v_taken bigint[] := '{}';
    v_refused record;
begin
    published := 0;
    existing := 0;
    repeated := false;
    if p_source is not null then
        insert into publication (source, batch, published_at)
        select p_source, p_batch, v_now
        where not exists (select from publication p where p.source = p_source and p.batch > p_batch)
        on conflict do nothing;
        if not found then
            repeated := true;
            select p.published, p.existing into published, existing
            from publication p where p.source = p_source and p.batch = p_batch;
            published := coalesce(published, 0);
            existing := coalesce(existing, 0);
            perform unstage_v1(p_job);
            return;
        end if;
        -- A stream repeats its last batch at most.
        delete from publication p where p.source = p_source and p.batch < p_batch - 100;
    end if;
    if coalesce(cardinality(p_names), 0) = 0 then
        perform unstage_v1(p_job);
        return;
    end if;

    if exists (
        select from unnest(p_names) n(name)
        where not exists (select from staged s where s.name = n.name and s.job = p_job)) then
        raise exception 'laneway: a staging table of job % is gone', p_job
            using errcode = 'PNS01', hint = 'Run the job again.';
    end if;
    v_all := (
        select string_agg(format('select * from %I', n.name), ' union all ' order by n.ordinal)
        from unnest(p_names) with ordinality n(name, ordinal));

    execute format(
        'select array_agg(s.id), array_agg(s.queue), array_agg(s.key) from (%s) s where s.key is not null', v_all)
    into v_ids, v_queues, v_keys;
    if v_ids is not null then
        v_taken := array(
            select x.id
            from unnest(v_ids, (select r.status from reserve_keys_v1(v_ids, v_queues, v_keys, v_now) r)) x(id, status)
            where x.status is not null);
        existing := cardinality(v_taken);
    end if;

    if exists (select from channel c where c.backlog is not null or c.closing) then
        execute format(
            'select array_agg(s.queue), array_agg(s.channel)
            from (%s) s where not exists (select from unnest($1) t(id) where t.id = s.id)', v_all)
        into v_queues, v_channels using v_taken;
        v_status := refuse_v1(array_fill(null::text, array[coalesce(cardinality(v_queues), 0)]), v_queues, v_channels);
        select count(*) over () as n, x.* into v_refused
        from unnest(v_status, v_queues, v_channels) x(status, queue, channel) where x.status is not null limit 1;
        if found then
            raise exception 'channel % of queue % is %, so % messages would be refused: nothing of the job was published',
                v_refused.channel, v_refused.queue, v_refused.status, v_refused.n
                using errcode = case v_refused.status when 'full' then 'PNF01' else 'PNC01' end;
        end if;
    end if;

    if v_taken <> '{}' then
        v_all := format('select s.* from (%s) s where not exists (select from unnest($6) t(id) where t.id = s.id)', v_all);
    end if;
    -- Two passes over what was staged: one for the wakes, one for the messages.
    execute format(
        'insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(p.due, $1), p.channel_id, min(p.due), min(p.id), sum(p.n), p.priority, p.queue, p.channel, p.lane
        from (
            select x.channel_id, x.queue, x.channel, x.priority, x.lane, x.due, min(x.id) as id, count(*) as n
            from (
                select s.id, s.channel_id, s.queue, s.channel, coalesce(s.priority, $4) as priority,
                    case when s.queue = any(array(select k.queue from kind_queue k)) then ''='' || coalesce(s.kind, $2) else '''' end as lane,
                    coalesce(s.at, $1 + s.delay * interval ''1 microsecond'', $1) as due
                from (%s) s
            ) x
            group by x.channel_id, x.queue, x.channel, x.priority, x.lane, x.due
        ) p
        group by greatest(p.due, $1), p.channel_id, p.priority, p.queue, p.channel, p.lane', v_all)
    using v_now, p_kind, p_content_type, p_priority, p_max_attempts, v_taken;
    execute format(
        'insert into message (
            id, channel_id, due, published_at, first_published_at, expires_at, key_window,
            max_attempts, priority, queue, channel, kind, key, content_type, headers, payload, by_kind)
        select
            s.id, s.channel_id, coalesce(s.at, $1 + s.delay * interval ''1 microsecond'', $1), $1, $1,
            coalesce(s.expires_at, $1 + s.expires_in * interval ''1 microsecond''),
            s.key_window * interval ''1 microsecond'', coalesce(s.max_attempts, $5), coalesce(s.priority, $4),
            s.queue, s.channel, coalesce(s.kind, $2), s.key, coalesce(s.content_type, $3),
            nullif(s.headers::jsonb, ''{}''), s.payload,
            case when s.queue = any(array(select k.queue from kind_queue k)) then true end
        from (%s) s', v_all)
    using v_now, p_kind, p_content_type, p_priority, p_max_attempts, v_taken;
    get diagnostics published = row_count;

    execute format(
        'insert into staged_count (at, last_id, queue, kind, n)
        select $1, max(max(s.id)) over (), s.queue, coalesce(s.kind, $2), count(*)
        from (%s) s group by s.queue, coalesce(s.kind, $2)', v_all)
    using v_now, p_kind, p_content_type, p_priority, p_max_attempts, v_taken;

    if published + existing <> (select coalesce(sum(c), 0) from unnest(p_counts) c) then
        raise exception 'laneway: job % staged % rows, % are left', p_job,
            (select sum(c) from unnest(p_counts) c), published + existing
            using errcode = 'PNS01', hint = 'The server lost unlogged tables in a crash. Run the job again.';
    end if;
    if exists (select from listener l where l.until > v_now) then
        execute format('select array_agg(s.id) from (%s) s', v_all)
        into v_ids using v_now, p_kind, p_content_type, p_priority, p_max_attempts, v_taken;
        perform add_events_v1(array['published'], v_ids, v_now);
    end if;
    if published > 0 and exists (select from sleeper s where s.until > v_now) then
        execute format('select array_agg(distinct s.queue) from (%s) s', v_all)
        into v_queues using v_now, p_kind, p_content_type, p_priority, p_max_attempts, v_taken;
        perform notify_workers_v1(v_queues, v_now);
    end if;
    if p_source is not null then
        update publication p set published = publish_staged_v1.published, existing = publish_staged_v1.existing
        where p.source = p_source and p.batch = p_batch;
    end if;
    perform unstage_v1(p_job);
end
$$;

-- unstage: drop the staging tables of a job, or (p_job null) all that are older than p_older, whose
-- driver is considered dead; 200 at most, because each costs some locks: call it until it drops fewer. A
-- table that is locked is left for the next time.
--
-- A job with a row of its own (open_job_v1) ends with it: attempts that are still under way find that
-- row gone and roll back. It waits for one that is about to commit, but only briefly: that one may
-- hang.
create or replace function "laneway".unstage_v1(p_job text, p_older interval default '0')
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '5s'
as $$
declare
    v_name text;
    v_dropped bigint := 0;
begin
    begin
        delete from staged s where s.name = p_job;
    exception
        when lock_not_available then null;
    end;
    for v_name in
        select s.name from staged s
        where (p_job is null or s.job = p_job) and s.created_at <= clock_timestamp() - p_older
        order by s.name limit 200 for update skip locked
    loop
        begin
            execute format('lock table %I in access exclusive mode nowait', v_name);
            execute format('drop table %I', v_name);
        exception
            when lock_not_available then continue;
            when undefined_table then null;
        end;
        delete from staged s where s.name = v_name;
        v_dropped := v_dropped + 1;
    end loop;
    return v_dropped;
end
$$;
