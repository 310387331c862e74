-- give back: the work was not begun; the message waits again at its old position and the attempt is not
-- counted. With a delay it becomes due later instead.
--
-- Keeps: only the holder of the lease with this fence gives the message back, and its row is not
-- rewritten unless it is delayed. Locks leases in id order. Answers a row a message: 'given_back' or
-- 'lost'.
create or replace function "laneway".give_back_v1(
    p_ids bigint[], p_fences bigint[], p_delays interval[] default '{}', p_now timestamptz default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_history text := (select s.history from setting s);
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_ids bigint[];
    v_fences bigint[];
    v_late bigint[];
    v_dues timestamptz[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, nullif(x.delay, interval '0') as delay
        from unnest(p_ids, p_fences, p_delays) x(id, fence, delay)
    ),
    ended as (
        delete from lease l
        where l.message_id = any(p_ids)
            and ((l.message_id, l.fence) in (select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence))) is true
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    outcome as materialized (
        select e.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind, m.by_kind,
            octet_length(m.payload) as payload_size, i.delay, coalesce(v_now + i.delay, m.due) as next_due
        from ended e
        cross join lateral (select k.* from message k where k.id = e.message_id offset 0) m
        join item i on i.id = e.message_id and i.fence = e.fence
    ),
    recorded as (
        insert into history (xid, message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select v_xid, f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at,
            v_now, f.payload_size, false, false, f.priority, f.queue, f.channel, f.kind, f.worker, 'given_back'
        from outcome f where v_history = 'all'
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
        select greatest(f.next_due, v_now), f.channel_id, f.next_due, f.message_id, 1, f.priority, f.queue, f.channel,
            case when f.by_kind then '=' || f.kind when f.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from outcome f where f.delay is null
    )
    select array_agg(f.message_id), array_agg(f.fence),
        array_agg(f.message_id) filter (where f.delay is not null), array_agg(f.next_due) filter (where f.delay is not null),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted)
    into v_ids, v_fences, v_late, v_dues, v_freed, v_freed_queues, v_freed_channels
    from outcome f;

    if v_late is not null then
        perform put_back_v1(v_late, v_dues, array_fill(false, array[cardinality(v_late)]), '{}',
            array_fill(true, array[cardinality(v_late)]), '{}', '{}', v_now);
    end if;
    if exists (select from sleeper s where s.until > v_now) then
        perform notify_workers_v1(array(
            select k.queue from unnest(v_ids) x(id)
            cross join lateral (select m.queue from message m where m.id = x.id offset 0) k
            where x.id <> all(coalesce(v_late, '{}'))), v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;
    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['given_back'], v_ids, v_now);
    end if;
    return query select x.id, x.fence, 'given_back' from unnest(v_ids, v_fences) x(id, fence);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from report_lost_v1(p_ids, p_fences, v_ids, v_fences, 'give_back', v_now);
    end if;
end
$$;
