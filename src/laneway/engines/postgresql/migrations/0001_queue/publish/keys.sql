-- Publish keys; what to do with one that is taken: docs/decisions/0017-key-modes.md.

-- The names of keys: the scope in which each holds, then the key itself. All scopes have sixteen characters, so that no
-- name of one can be read as a name of another: 96 bits of SHA-256, as in engines/keys.py.
-- Of p_key_scope, p_channel and p_kind one element holds for all, as in publish_v1.
create or replace function "laneway".key_names_v1(p_key text[], p_key_scope text[], p_channel text[], p_kind text[])
returns text[]
language plpgsql stable
set search_path = "laneway", pg_temp
as $$
begin
    if exists (select from unnest(p_key_scope) x(scope) where x.scope not in ('kind', 'channel', 'queue')) then
        raise exception 'laneway: key_scope must be kind, channel or queue' using errcode = 'invalid_parameter_value';
    end if;
    return array(
        select encode(substring(sha256(convert_to(case x.scope
            when 'queue' then 'queue'
            when 'channel' then 'channel ' || x.channel
            else length(x.channel) || ':' || x.channel || x.kind end, 'UTF8')) for 12), 'base64') || x.key
        from (
            select u.ordinal, u.key, coalesce(u.scope, case when cardinality(p_key_scope) = 1 then p_key_scope[1] end) as scope,
                coalesce(u.channel, p_channel[1]) as channel,
                coalesce(u.kind, p_kind[1], '') as kind
            from unnest(p_key, p_key_scope, p_channel, p_kind) with ordinality u(key, scope, channel, kind, ordinal)
        ) x
        order by x.ordinal);
end
$$;

-- Part of publish: reserve the batch's keys, or find the messages that have them.
--
-- Keeps: of two publishes with the same key, exactly one publishes; the other answers the same id.
-- A key that is in use is read, never locked, so an open publish that found it blocks no completion.
create or replace function "laneway".reserve_keys_v1(
    p_ids bigint[], p_queue text[], p_key text[], p_now timestamptz,
    out ids bigint[], out status text[]
)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_undecided integer;
    v_past boolean;
    v_taken integer;
begin
    ids := p_ids;
    status := array_fill(null::text, array[cardinality(p_ids)]);
    for v_try in 1 .. 20 loop
        -- Read before inserting: a key in use is found at once, also while its message's end is uncommitted.
        -- Each iteration is a new statement and sees what others committed while the insert waited.
        select
            array_agg(coalesce(d.message_id, x.id) order by x.ordinal),
            array_agg(
                case when x.key is null or x.status is not null then x.status
                    when d.message_id = x.id then 'reserved'
                    when d.message_id is not null then 'existing' end
                order by x.ordinal),
            count(*) filter (where x.key is not null and x.status is null and d.message_id is null),
            coalesce(bool_or(d.past), false)
        into ids, status, v_undecided, v_past
        from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
        left join lateral (
            select case when k.expires_at <= p_now then null else k.message_id end as message_id,
                k.expires_at <= p_now as past
            from dedupe k
            where x.status is null and k.queue = coalesce(x.queue, p_queue[1]) and k.key = x.key
            offset 0
        ) d on true;
        exit when v_undecided = 0;

        -- A key that has expired is in the way: delete it, in order.
        if v_past then
            delete from dedupe d where (d.queue, d.key) in (
                select k.queue, k.key
                from (
                    select distinct coalesce(x.queue, p_queue[1]) as queue, x.key
                    from unnest(p_queue, p_key, status) x(queue, key, status) where x.status is null
                ) x join dedupe k on k.queue = x.queue and k.key = x.key
                where k.expires_at <= p_now
                order by k.queue, k.key for update of k);
        end if;
        -- Ours if the insert succeeds. It waits for another publisher of the same key to end.
        with first as materialized (
            select distinct on (i.queue, i.key) i.id, i.queue, i.key
            from (
                select x.ordinal, x.id, coalesce(x.queue, p_queue[1]) as queue, x.key
                from unnest(ids, p_queue, p_key, status) with ordinality x(id, queue, key, status, ordinal)
                where x.key is not null and x.status is null
            ) i
            order by i.queue, i.key, i.ordinal
        )
        insert into dedupe (queue, key, message_id)
        select f.queue, f.key, f.id from first f order by f.queue, f.key
        on conflict (queue, key) do nothing;
        get diagnostics v_taken = row_count;
        v_undecided := v_undecided - v_taken;
        exit when v_undecided = 0;
    end loop;
    if v_undecided > 0 then
        raise exception 'laneway: a publish key changed hands too often to be decided'
            using errcode = 'serialization_failure', hint = 'Publish again.';
    end if;
    status := array(
        select nullif(s.status, 'reserved') from unnest(status) with ordinality s(status, ordinal) order by s.ordinal);
end
$$;

-- Part of every verb that ends messages: their keys are released, at once or after their window.
-- Null arrays: none of them had a key.
create or replace function "laneway".release_keys_v1(
    p_ids bigint[], p_queues text[], p_keys text[], p_windows interval[], p_now timestamptz
) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_deleted bigint;
    v_kept bigint;
begin
    if p_keys is null then
        return;
    end if;
    delete from dedupe k using unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    get diagnostics v_deleted = row_count;
    update dedupe k set expires_at = p_now + x.win
    from unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is not null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    get diagnostics v_kept = row_count;
    if v_deleted + v_kept < cardinality(p_ids) then
        perform pass_keys_v1(p_ids, p_queues, p_keys, p_windows, p_now);
    end if;
end
$$;

-- Part of cancel and upkeep: lock the keys of these messages in order, before the messages themselves. Who ends a
-- message locks the one that waits behind it (start_behind_v1) once it holds the key: the same order.
-- p_wait: wait for those that others hold; else answers the messages whose keys others hold.
create or replace function "laneway".lock_keys_v1(p_ids bigint[], p_wait boolean)
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_keyed bigint[] := array(select m.id from message m where m.id = any(p_ids) and m.key is not null);
    v_locked bigint[];
begin
    if cardinality(v_keyed) = 0 then
        return '{}';
    end if;
    if p_wait then
        perform from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) order by k.queue, k.key for update of k;
        return '{}';
    end if;
    v_locked := array(
        select m.id from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) order by k.queue, k.key for update of k skip locked);
    return array(
        select m.id from message m join dedupe k on k.queue = m.queue and k.key = m.key
        where m.id = any(v_keyed) and m.id <> all(v_locked));
end
$$;

-- Part of release_keys_v1, for keys that are not simply those of the messages that end: one of these waits behind
-- another message, or another behind it, or the key went to somebody else.
--
-- Keeps: a key whose message ended while it waited belongs to the running message again. Locks keys in order.
create or replace function "laneway".pass_keys_v1(
    p_ids bigint[], p_queues text[], p_keys text[], p_windows interval[], p_now timestamptz
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    -- Locks; what is read from here on stays as it is.
    perform start_behind_v1(p_ids, p_queues, p_keys, p_now);
    delete from dedupe k using unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    update dedupe k set expires_at = p_now + x.win
    from unnest(p_ids, p_queues, p_keys, p_windows) x(id, queue, key, win)
    where x.win is not null and k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is null;
    update dedupe k set message_id = k.behind, behind = null, behind_due = null
    from unnest(p_ids, p_queues, p_keys) x(id, queue, key)
    where k.queue = x.queue and k.key = x.key and k.message_id = x.id and k.behind is not null;
end
$$;

-- Part of replace_v1: new messages behind the running ones that have their keys. Answers the ids, new ones where the
-- status is 'leased'. The caller holds the keys.
--
-- Such a message is scheduled for a time that never comes and that no other message has, so that its wake is
-- found by it (start_behind_v1).
create or replace function "laneway".park_v1(
    p_ids bigint[], p_status text[], p_payload bytea[], p_queue text[], p_channel text[], p_kind text[],
    p_content_type text[], p_headers text[], p_key text[], p_key_window interval[], p_priority smallint[],
    p_delay interval[], p_at timestamptz[], p_expires_in interval[], p_expires_at timestamptz[],
    p_max_attempts integer[], p_now timestamptz
) returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_ids bigint[] := array(
        select case when x.status = 'leased' then nextval('message_id') else x.id end
        from unnest(p_ids, p_status) with ordinality x(id, status, ordinal) order by x.ordinal);
begin
    with inserted as (
        insert into message (
            id, channel_id, due, published_at, first_published_at, expires_at, key_window,
            max_attempts, priority, queue, channel, kind, key, content_type, headers, payload, by_kind)
        select x.id, channel_id_v1(x.queue, x.channel),
            timestamptz '5000-01-01 00:00:00+00' + (x.id % 1000000000000000) * interval '1 microsecond', p_now, p_now,
            coalesce(x.expires_at, p_now + x.expires_in), x.key_window, x.max_attempts, x.priority,
            x.queue, x.channel, x.kind, x.key, x.content_type, x.headers::jsonb, x.payload,
            case when x.queue = any(array(select s.queue from kind_queue s)) then true end
        from unnest(v_ids, p_status, p_payload, p_queue, p_channel, p_kind, p_content_type, p_headers, p_key, p_key_window,
            p_priority, p_expires_in, p_expires_at, p_max_attempts)
            x(id, status, payload, queue, channel, kind, content_type, headers, key, key_window,
            priority, expires_in, expires_at, max_attempts)
        where x.status = 'leased'
        returning message.id, message.channel_id, message.due, message.priority, message.queue, message.channel,
            case when message.by_kind then '=' || message.kind else '' end as lane
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select i.due, i.channel_id, i.due, i.id, 1, i.priority, i.queue, i.channel, i.lane from inserted i;

    update dedupe k set
        behind = coalesce(k.behind, k.message_id), message_id = x.id,
        behind_due = coalesce(x.at, p_now + x.delay, p_now)
    from unnest(v_ids, p_status, p_queue, p_key, p_delay, p_at) x(id, status, queue, key, delay, at)
    where x.status = 'leased' and k.queue = x.queue and k.key = x.key;

    if exists (select from listener l where l.until > p_now) then
        perform add_events_v1(array['published'], array(
            select x.id from unnest(v_ids, p_status) x(id, status) where x.status = 'leased'), p_now);
    end if;
    return v_ids;
end
$$;

-- Part of every verb that ends messages with keys: what waited behind them (replace_v1) is due from now on.
--
-- Keeps: of the messages of a key at most one runs. Who parks a message behind another holds the key's row, and
-- so does this: either it is found here, or the other finds that the message has ended. Locks keys in order,
-- then the messages that waited behind. Answers the messages of p_ids that had one behind them.
create or replace function "laneway".start_behind_v1(p_ids bigint[], p_queues text[], p_keys text[], p_now timestamptz)
returns bigint[]
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
declare
    v_ended bigint[];
    v_ids bigint[];
    v_dues timestamptz[];
    v_queues text[];
begin
    perform from unnest(p_queues, p_keys) x(queue, key)
    join dedupe k on k.queue = x.queue and k.key = x.key
    order by k.queue, k.key for update of k;

    -- A statement of its own: it sees what was committed while this waited.
    select array_agg(x.id), array_agg(k.message_id), array_agg(greatest(k.behind_due, p_now)), array_agg(k.queue)
    into v_ended, v_ids, v_dues, v_queues
    from unnest(p_ids, p_queues, p_keys) x(id, queue, key)
    join dedupe k on k.queue = x.queue and k.key = x.key and k.behind = x.id;
    if v_ids is null then
        return null;
    end if;
    update dedupe k set behind = null, behind_due = null
    from unnest(p_ids, p_queues, p_keys) x(id, queue, key)
    where k.queue = x.queue and k.key = x.key and k.behind = x.id;

    with started as materialized (
        select m.id, m.channel_id, m.due as parked, x.due, m.priority, m.queue, m.channel,
            case when m.by_kind then '=' || m.kind when m.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end as lane
        from unnest(v_ids, v_dues) x(id, due) join message m on m.id = x.id
    ),
    moved as (
        update message m set due = s.due from started s where m.id = s.id
    ),
    -- The wake of its own, at a time that nobody else's has.
    unwoken as (
        delete from wake w using started s
        where w.queue = s.queue and w.at = s.parked and w.message_id = s.id and w.n = 1
        returning w.message_id
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select greatest(s.due, p_now), s.channel_id, s.due, s.id, 1, s.priority, s.queue, s.channel, s.lane from started s
    union all
    -- Somebody has read that wake and counts the message: one fewer, just after its time.
    select s.parked + interval '1 microsecond', s.channel_id, s.parked, s.id, -1, s.priority, s.queue, s.channel, s.lane
    from started s where not exists (select from unwoken u where u.message_id = s.id);

    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array(
            select x.queue from unnest(v_queues, v_dues) x(queue, due) where x.due < p_now + interval '2 seconds'), p_now);
    end if;
    return v_ended;
end
$$;
