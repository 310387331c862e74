-- give back: the work was not begun; the message returns to its place and the attempt is not counted.
-- With a delay it returns later instead.
--
-- Keeps: as complete. The message row is not rewritten unless it is delayed. Locks leases in id order.
create or replace function "penstock".give_back_v1(
    p_ids bigint[], p_fences bigint[], p_delays interval[] default '{}', p_now timestamptz default null
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
begin
    with item as materialized (
        select distinct on (x.id, x.fence) x.id, x.fence, nullif(x.delay, interval '0') as delay
        from unnest(p_ids, p_fences, p_delays) x(id, fence, delay) order by x.id, x.fence
    ),
    ended as (
        delete from lease l using item i where l.message_id = i.id and l.fence = i.fence
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    fate as materialized (
        select e.*, m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind,
            octet_length(m.payload) as payload_size, i.delay, coalesce(v_now + i.delay, m.due) as next_due
        from ended e join item i on i.id = e.message_id and i.fence = e.fence join message m on m.id = e.message_id
    ),
    delayed as (
        update message m set due = f.next_due from fate f where m.id = f.message_id and f.delay is not null
    ),
    told as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
        select f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at, v_now,
            f.payload_size, false, false, f.priority, f.queue, f.channel, f.kind, f.worker, 'given_back'
        from fate f where v_history = 'all'
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel)
        select greatest(f.next_due, v_now), f.channel_id, f.next_due, f.message_id, 1, 0, f.priority, f.queue, f.channel
        from fate f
        union all
        select v_now, f.channel_id, v_now, 0, 0, count(*), 0, f.queue, f.channel
        from fate f where f.counted group by f.channel_id, f.queue, f.channel
    )
    select
        array_agg(i.id order by i.id, i.fence), array_agg(i.fence order by i.id, i.fence),
        array_agg(case when e.message_id is null then 'lost' else 'given_back' end order by i.id, i.fence)
    into p_ids, p_fences, v_status
    from item i left join ended e on e.message_id = i.id and e.fence = i.fence;

    perform note_stale_v1(p_ids, p_fences, v_status, 'give_back', v_now);
    return query select * from unnest(p_ids, p_fences, v_status);
end
$$;
