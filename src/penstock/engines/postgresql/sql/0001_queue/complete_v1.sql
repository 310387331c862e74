-- complete: the work is done, the message ends.
--
-- Keeps: only the holder of the lease with this fence ends the message; whoever lost it is told
-- 'lost', and that is noted. Locks leases in id order.
create or replace function "penstock".complete_v1(
    p_ids bigint[], p_fences bigint[], p_now timestamptz default null
) returns table (id bigint, fence bigint, status text)
language plpgsql
set search_path = "penstock", pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := write_time_v1(p_now);
    v_history text := (select s.history from setting s);
    v_ids bigint[];
    v_fences bigint[];
begin
    with item as materialized (
        select x.id, x.fence from unnest(p_ids, p_fences) x(id, fence) order by x.id
    ),
    ended as (
        delete from lease l using item i where l.message_id = i.id and l.fence = i.fence
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    done as (
        delete from message m using ended e where m.id = e.message_id
        returning m.id, m.queue, m.channel, m.kind, m.key, m.key_window, m.priority, m.attempt, m.due,
            m.published_at, m.first_published_at, octet_length(m.payload) as payload_size,
            e.fence, e.claimed_at, e.channel_id, e.counted, e.worker
    ),
    told as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select d.id, d.fence, d.attempt + 1, d.first_published_at, d.published_at, d.due, d.claimed_at, v_now,
            d.payload_size, true, false, d.priority, d.queue, d.channel, d.kind, d.worker, 'completed'
        from done d where v_history = 'all'
    ),
    freed as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel)
        select v_now, d.channel_id, v_now, 0, 0, count(*), 0, d.queue, d.channel
        from done d where d.counted group by d.channel_id, d.queue, d.channel
    ),
    unkeyed as (
        delete from dedupe k using done d
        where d.key is not null and d.key_window is null and k.queue = d.queue and k.key = d.key and k.message_id = d.id
    ),
    aging as (
        update dedupe k set expires_at = v_now + d.key_window from done d
        where d.key is not null and d.key_window is not null
            and k.queue = d.queue and k.key = d.key and k.message_id = d.id
    )
    select array_agg(d.id), array_agg(d.fence) into v_ids, v_fences from done d;

    return query select x.id, x.fence, 'completed' from unnest(v_ids, v_fences) x(id, fence);
    if coalesce(cardinality(v_ids), 0) < cardinality(p_ids) then
        return query select * from lost_v1(p_ids, p_fences, v_ids, v_fences, 'complete', v_now);
    end if;
end
$$;
