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
