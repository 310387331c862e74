-- Part of upkeep: waiting messages whose expires_at has passed end as 'lapsed'. Claims skip them;
-- here they are deleted. Locks their channels, as a claim does (SKIP LOCKED).
create or replace function "laneway".lapse_v1(p_limit integer, p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_past bigint[];
    v_channel_ids uuid[];
begin
    select array_agg(x.id), array_agg(distinct x.channel_id) into v_past, v_channel_ids
    from (select m.id, m.channel_id from message m
        where m.expires_at <= v_now and not exists (select from lease l where l.message_id = m.id offset 0)
        order by m.expires_at limit p_limit) x;
    if v_past is null then
        return 0;
    end if;
    v_now := write_time_v1(p_now);
    insert into channel (id, queue, name)
    select distinct on (m.channel_id) m.channel_id, m.queue, m.channel
    from message m where m.id = any(v_past) order by m.channel_id
    on conflict do nothing;
    v_channel_ids := array(select c.id from channel c where c.id = any(v_channel_ids) for no key update skip locked);
    return cardinality(end_waiting_v1(
        -- Read again: one that was replaced (replace_v1) may have more time.
        array(select m.id from message m
            where m.id = any(v_past) and m.channel_id = any(v_channel_ids) and m.expires_at <= v_now), 'lapsed', v_now));
end
$$;
