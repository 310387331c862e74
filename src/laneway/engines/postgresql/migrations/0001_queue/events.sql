-- listen: create a mailbox for events, for p_length. A null filter matches all. Answers its id.
--
-- Keeps: it gets the events of every transaction that begins after this one has committed; those of a
-- transaction that was open then may be missing.
create or replace function "laneway".listen_v1(
    p_what text[], p_queues text[], p_channels text[], p_kinds text[], p_length interval,
    p_now timestamptz default null
) returns bigint
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_id bigint;
begin
    perform check_numbers_v1('number of names', array[cardinality(p_what), cardinality(p_queues), cardinality(p_channels), cardinality(p_kinds)], 0, 10000),
        check_names_v1('event', p_what), check_names_v1('queue', p_queues), check_names_v1('channel', p_channels),
        check_names_v1('kind', p_kinds, true), check_lengths_v1('length', array[p_length], '0', '1 day');
    perform server_life_v1();
    insert into listener (until, id, read_to, what, queues, channels, kinds)
    select time_v1(p_now) + p_length, nextval('listener_id'), n.last_value,
        p_what, p_queues, p_channels, p_kinds
    from mail_number n
    returning id into v_id;
    return v_id;
end
$$;

-- unlisten: close a mailbox. Its row stays for a while, so that upkeep finds what is still being written.
create or replace function "laneway".unlisten_v1(p_listener_id bigint, p_now timestamptz default null)
returns void
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
declare
    v_now timestamptz := time_v1(p_now);
begin
    update listener l set until = v_now where l.until > v_now and l.id = p_listener_id;
    delete from mail m where m.listener_id = p_listener_id;
end
$$;

-- hear: read and delete up to p_limit rows of a mailbox, in order. There is always at least one row: alive
-- says whether the mailbox still gets events, behind how many rows (of all listeners) were written since it
-- was renewed.
--
-- With p_length the mailbox is renewed: it has read everything. Not more often than needed: every verb
-- that adds events has to step over the old versions of its row.
create or replace function "laneway".hear_v1(
    p_listener_id bigint, p_limit integer, p_length interval default null, p_now timestamptz default null
) returns table (
    alive boolean, behind bigint, number bigint, at timestamptz, what text, ids bigint[], queues text[],
    channels text[], kinds text[]
)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := time_v1(p_now);
    v_number bigint := (select n.last_value from mail_number n);
begin
    perform check_lengths_v1('length', array[p_length], '0', '1 day');
    select true, v_number - l.read_to into alive, behind
    from listener l where l.until > v_now and l.id = p_listener_id;
    alive := coalesce(alive, false);
    if alive and p_length is not null then
        update listener l set until = v_now + p_length, read_to = v_number
        where l.until > v_now and l.id = p_listener_id;
    end if;
    return query
    with gone as (
        delete from mail m where m.ctid = any(array(
            select k.ctid from mail k where k.listener_id = p_listener_id
            order by k.listener_id, k.number limit p_limit))
        returning m.number, m.at, m.what, m.ids, m.queues, m.channels, m.kinds
    )
    select alive, behind, g.number, g.at, g.what, g.ids, g.queues, g.channels, g.kinds
    from (select) x left join gone g on true
    order by g.number;
end
$$;

-- Part of every verb that changes the state of messages: write events for the listeners. The messages
-- must still exist, waiting, leased or dead. p_what has one element per message, or one for all.
--
-- Callers first check whether there are listeners: without any that is a read of an empty index.
create or replace function "laneway".add_events_v1(p_what text[], p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    perform deliver_events_v1(array_agg(coalesce(x.what, p_what[1])), array_agg(x.id),
        array_agg(coalesce(m.queue, d.queue)), array_agg(coalesce(m.channel, d.channel)),
        array_agg(coalesce(m.kind, d.kind)), p_now)
    from unnest(p_what, p_ids) x(what, id)
    left join lateral (select k.queue, k.channel, k.kind from message k where k.id = x.id offset 0) m on true
    left join lateral (
        select k.queue, k.channel, k.kind from dead k where m.queue is null and k.id = x.id offset 0) d on true
    where coalesce(m.queue, d.queue) is not null;
end
$$;

-- Part of add_events_v1, and of the verbs that end messages: write events to the mailbox of each listener
-- whose filter matches, one row per kind of event and statement; and notify the listeners that sleep.
--
-- Keeps: it only appends, so it waits for nobody and fails no transaction. A mailbox that is not
-- read gets no rows beyond 100,000 of all listeners' events, and none after its `until`.
create or replace function "laneway".deliver_events_v1(
    p_what text[], p_ids bigint[], p_queues text[], p_channels text[], p_kinds text[], p_now timestamptz
) returns void
language plpgsql
as $$
declare
    v_mailboxes text[];
begin
    with posted as (
        insert into mail (listener_id, number, at, what, ids, queues, channels, kinds)
        select l.id, nextval('mail_number'), p_now, x.what,
            array_agg(x.id), array_agg(x.queue), array_agg(x.channel), array_agg(x.kind)
        from listener l
        cross join unnest(p_what, p_ids, p_queues, p_channels, p_kinds) x(what, id, queue, channel, kind)
        where l.until > p_now
            and (select n.last_value from mail_number n) - l.read_to < 100000
            and (l.what is null or x.what = any(l.what))
            and (l.queues is null or x.queue = any(l.queues))
            and (l.channels is null or x.channel = any(l.channels))
            and (l.kinds is null or x.kind = any(l.kinds))
        group by l.id, x.what
        returning mail.listener_id
    )
    select array_agg(distinct 'mail ' || p.listener_id) into v_mailboxes from posted p;
    if v_mailboxes is not null and exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(v_mailboxes, p_now);
    end if;
end
$$;

-- sleep: notify this worker for p_length when a message comes to its queues. Without a length: it is
-- awake, no longer notify it.
--
-- Keeps: a worker has one row a queue. It claims once more between this call and its wait, so only a
-- publish that was already running can miss it. Rows of workers that are gone are deleted here.
create or replace function "laneway".sleep_v1(
    p_queues text[], p_worker text, p_length interval, p_now timestamptz default null, p_kinds text[] default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_now timestamptz := time_v1(p_now);
begin
    perform check_names_v1('queue', p_queues), check_names_v1('worker', array[p_worker]), check_lengths_v1('length', array[p_length], '0', '1 day'),
        check_names_v1('kind', p_kinds, true);
    delete from sleeper s where s.ctid = any(array(
        select k.ctid from sleeper k where k.worker = p_worker or k.until < v_now
        for update skip locked));
    insert into sleeper (until, queue, worker, kinds)
    select v_now + p_length, q.name, p_worker, p_kinds from unnest(p_queues) q(name) where p_length is not null;
end
$$;

-- Part of every verb that adds work: notify the sleeping workers of these queues when this commits.
--
-- Keeps: with no sleeper it reads an empty index. NOTIFY takes a lock of the whole database until the
-- commit is done, so it is sent only if a worker sleeps; and not while the notification queue is half
-- full, because a full one would make the caller's commit fail. A notification is a hint: a worker that
-- misses one finds the work by polling.
--
-- p_kinds: the kinds of the work, null: any. Who sleeps for some kinds only gets one of these with the queue.
create or replace function "laneway".notify_workers_v1(
    p_queues text[], p_now timestamptz, p_kinds text[] default null
)
returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform pg_notify(notify_channel_v1(), x.payload)
    from (
        select distinct s.queue || coalesce(chr(1) || k.kind, '') as payload
        from sleeper s left join lateral (
            select k.kind from unnest(s.kinds) k(kind) where p_kinds is null or k.kind = any(p_kinds) limit 1
        ) k on true
        where s.until > p_now and s.queue = any(p_queues) and (s.kinds is null or k.kind is not null)
    ) x
    where pg_notification_queue_usage() < 0.5;
end
$$;
