-- Part of upkeep: expired leases. The message waits again in its channel, longer each time; one that has
-- reached max_attempts becomes a dead letter here, before it can be delivered again.
--
-- Locks leases with SKIP LOCKED: one that its holder is settling is left to the holder.
-- p_floor: where the live part of lease_until began at the last call, null for a full scan.
create or replace function "laneway".expire_leases_v1(
    p_limit integer, p_floor timestamptz default null, p_now timestamptz default null,
    out expired bigint, out buried bigint, out floor timestamptz
)
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
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_from timestamptz := case when p_floor <= v_now then p_floor else '-infinity' end;
    v_setting setting;
    v_due bigint[];
    v_busy bigint[];
    v_dead bigint[];
    v_back bigint[];
    v_dues timestamptz[];
    v_freed uuid[];
    v_freed_queues text[];
    v_freed_channels text[];
begin
    -- Read first: upkeep that finds nothing writes nothing.
    select array_agg(l.message_id), coalesce(min(l.until), v_now) into v_due, floor
    from (select k.message_id, k.until from lease k
        where k.until >= v_from and k.until <= v_now order by k.until limit p_limit) l;
    if v_due is null then
        expired := 0;
        buried := 0;
        return;
    end if;
    select s.* into v_setting from setting s;
    -- Upkeep waits for nobody: a message that would die while somebody holds its key (replace_v1) dies next time.
    v_busy := lock_keys_v1(array(
        select m.id from message m where m.id = any(v_due) and m.key is not null and m.spent + 1 >= m.max_attempts), false);
    v_due := array(select x.id from unnest(v_due) x(id) where x.id <> all(v_busy));
    v_now := write_time_v1(p_now);

    with lost as materialized (
        select l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker from lease l
        where l.message_id = any(v_due) and l.until <= v_now
        order by l.message_id for update skip locked
    ),
    ended as (
        delete from lease l where l.message_id = any(array(select o.message_id from lost o))
    ),
    outcome as materialized (
        select o.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind,
            octet_length(m.payload) as payload_size, m.spent + 1 >= m.max_attempts as dead,
            v_now + least(v_setting.backoff_max, v_setting.backoff_initial * power(2, least(m.spent, 40))) as next_due
        from lost o
        cross join lateral (select k.* from message k where k.id = o.message_id offset 0) m
    ),
    recorded as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason)
        select f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at, v_now,
            f.payload_size, false, f.dead, f.priority, f.queue, f.channel, f.kind, f.worker,
            'expired', case when f.dead then 'max_attempts' end
        from outcome f where v_setting.history <> 'none'
    )
    select count(*), array_agg(f.message_id) filter (where f.dead),
        array_agg(f.message_id) filter (where not f.dead), array_agg(f.next_due) filter (where not f.dead),
        array_agg(f.channel_id) filter (where f.counted), array_agg(f.queue) filter (where f.counted),
        array_agg(f.channel) filter (where f.counted)
    into expired, v_dead, v_back, v_dues, v_freed, v_freed_queues, v_freed_channels from outcome f;

    if v_back is not null then
        perform put_back_v1(v_back, v_dues, array_fill(true, array[cardinality(v_back)]),
            array_fill(true, array[cardinality(v_back)]), array_fill(true, array[cardinality(v_back)]), '{}', '{}', v_now);
    end if;
    if v_freed is not null then
        perform free_slots_v1(v_freed, v_freed_queues, v_freed_channels, v_now);
    end if;

    if exists (select from listener l where l.until > v_now) then
        perform add_events_v1(array['expired'], v_back || v_dead, v_now);
    end if;
    buried := coalesce(cardinality(v_dead), 0);
    if buried > 0 then
        perform move_to_dead_v1(v_dead, array_fill('max_attempts'::text, array[buried::integer]),
            array_fill('LeaseExpired'::text, array[buried::integer]),
            array_fill('the lease ran out before the work was settled'::text, array[buried::integer]), v_now);
    end if;
end
$$;
