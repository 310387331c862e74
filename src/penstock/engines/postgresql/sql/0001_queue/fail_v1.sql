-- fail: give the message up; it becomes a dead letter with this reason and error.
--
-- Keeps: as complete. The error's text is cut at 16 KiB. Locks leases in id order.
create or replace function "penstock".fail_v1(
    p_ids bigint[], p_fences bigint[], p_reasons text[], p_error_types text[], p_errors text[],
    p_now timestamptz default null
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
    v_status text[];
    v_buried bigint[];
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.* 
        from unnest(p_ids, p_fences, p_reasons, p_error_types, p_errors) x(id, fence, reason, error_type, error)
        order by x.id, x.fence
    ),
    ended as (
        delete from lease l using item i where l.message_id = i.id and l.fence = i.fence
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    told as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason, error_type, error)
        select m.id, e.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due, e.claimed_at, v_now,
            octet_length(m.payload), false, true, m.priority, m.queue, m.channel, m.kind, e.worker, 'failed',
            i.reason, i.error_type, left(i.error, 16384)
        from ended e join item i on i.id = e.message_id and i.fence = e.fence join message m on m.id = e.message_id
        where v_history <> 'none'
    ),
    freed as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel)
        select v_now, e.channel_id, v_now, 0, 0, count(*), 0, m.queue, m.channel
        from ended e join message m on m.id = e.message_id where e.counted group by e.channel_id, m.queue, m.channel
    )
    select
        array_agg(i.id order by i.id, i.fence), array_agg(i.fence order by i.id, i.fence),
        array_agg(i.reason order by i.id, i.fence), array_agg(i.error_type order by i.id, i.fence),
        array_agg(left(i.error, 16384) order by i.id, i.fence),
        array_agg(case when e.message_id is null then 'lost' else 'failed' end order by i.id, i.fence),
        array_agg(e.message_id order by i.id, i.fence)
    into p_ids, p_fences, p_reasons, p_error_types, p_errors, v_status, v_buried
    from item i left join ended e on e.message_id = i.id and e.fence = i.fence;

    perform bury_v1(v_buried, p_reasons, p_error_types, p_errors, v_now);
    perform note_stale_v1(p_ids, p_fences, v_status, 'fail', v_now);
    return query select * from unnest(p_ids, p_fences, v_status);
end
$$;
