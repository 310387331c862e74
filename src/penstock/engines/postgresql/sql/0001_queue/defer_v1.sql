-- defer: put the message back for later, with saved state.
--
-- Without an error it is progress: the budget of attempts starts anew. With an error it is a failed
-- try: it counts, and the one that uses up max_attempts makes a dead letter ('dead').
-- p_keep: keep the saved state as it is; else p_states replaces it, null clears it.
--
-- Keeps: as complete. Locks leases in id order.
create or replace function "penstock".defer_v1(
    p_ids bigint[], p_fences bigint[], p_delays interval[], p_ats timestamptz[],
    p_keep boolean[], p_states bytea[], p_state_types text[],
    p_reasons text[], p_error_types text[], p_errors text[],
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
        select distinct on (x.id, x.fence) x.*, coalesce(x.at, v_now + coalesce(x.delay, interval '0')) as due,
            x.error_type is not null or x.error is not null or x.reason is not null as failed
        from unnest(p_ids, p_fences, p_delays, p_ats, p_keep, p_states, p_state_types, p_reasons, p_error_types, p_errors)
            x(id, fence, delay, at, keep, state, state_type, reason, error_type, error)
        order by x.id, x.fence
    ),
    ended as (
        delete from lease l using item i where l.message_id = i.id and l.fence = i.fence
        returning l.message_id, l.fence, l.claimed_at, l.channel_id, l.counted, l.worker
    ),
    fate as materialized (
        select e.*, i.due as next_due, i.keep, i.state as new_state, i.state_type as new_state_type, i.failed,
            i.reason, i.error_type, i.error,
            m.attempt, m.first_published_at, m.published_at, m.due, m.priority, m.queue, m.channel, m.kind,
            octet_length(m.payload) as payload_size,
            i.failed and m.spent + 1 >= m.max_attempts as dead
        from ended e join item i on i.id = e.message_id and i.fence = e.fence join message m on m.id = e.message_id
    ),
    returned as (
        update message m set
            due = f.next_due, attempt = m.attempt + 1,
            spent = case when f.failed then m.spent + 1 else 0 end,
            state = case when f.keep then m.state else f.new_state end,
            state_type = case when f.keep then m.state_type else f.new_state_type end
        from fate f where m.id = f.message_id and not f.dead
    ),
    told as (
        insert into history (message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at,
            payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome, reason, error_type, error)
        select f.message_id, f.fence, f.attempt + 1, f.first_published_at, f.published_at, f.due, f.claimed_at, v_now,
            f.payload_size, false, f.dead, f.priority, f.queue, f.channel, f.kind, f.worker,
            case when f.failed then 'retried' else 'deferred' end,
            case when f.dead then 'max_attempts' else f.reason end, f.error_type, left(f.error, 16384)
        from fate f where v_history = 'all' or (v_history = 'failures' and f.failed)
    ),
    woken as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel)
        select greatest(f.next_due, v_now), f.channel_id, f.next_due, f.message_id, 1, 0, f.priority, f.queue, f.channel
        from fate f where not f.dead
        union all
        select v_now, f.channel_id, v_now, 0, 0, count(*), 0, f.queue, f.channel
        from fate f where f.counted group by f.channel_id, f.queue, f.channel
    )
    select
        array_agg(i.id order by i.id, i.fence), array_agg(i.fence order by i.id, i.fence),
        array_agg(i.error_type order by i.id, i.fence), array_agg(left(i.error, 16384) order by i.id, i.fence),
        array_agg(case when f.message_id is null then 'lost' when f.dead then 'dead' else 'deferred' end
            order by i.id, i.fence),
        array_agg(case when f.dead then f.message_id end order by i.id, i.fence)
    into p_ids, p_fences, p_error_types, p_errors, v_status, v_buried
    from item i left join fate f on f.message_id = i.id and f.fence = i.fence;

    if 'dead' = any(v_status) then
        perform bury_v1(v_buried, array_fill('max_attempts'::text, array[cardinality(p_ids)]), p_error_types, p_errors, v_now);
    end if;
    perform note_stale_v1(p_ids, p_fences, v_status, 'defer', v_now);
    return query select * from unnest(p_ids, p_fences, v_status);
end
$$;
