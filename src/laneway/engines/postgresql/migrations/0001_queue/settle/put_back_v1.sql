-- Part of defer, give back and upkeep: messages whose leases the caller has just ended wait again
-- from p_dues on, with a wake for each. counts: the attempt is counted; fails: it also counts towards
-- max_attempts, else that count starts again at zero.
create or replace function "laneway".put_back_v1(
    p_ids bigint[], p_dues timestamptz[], p_counts boolean[], p_fails boolean[],
    p_keep boolean[], p_states bytea[], p_state_types text[], p_now timestamptz
) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
as $$
begin
    with back as (
        update message m set
            due = x.due,
            attempt = case when x.counts then m.attempt + 1 else m.attempt end,
            spent = case when not x.counts then m.spent when x.fails then m.spent + 1 else 0 end,
            state = case when x.keep then m.state else x.state end,
            state_type = case when x.keep then m.state_type else x.state_type end
        from unnest(p_ids, p_dues, p_counts, p_fails, p_keep, p_states, p_state_types)
            x(id, due, counts, fails, keep, state, state_type)
        where m.id = x.id
        returning m.id, m.channel_id, m.due, m.priority, m.queue, m.channel, m.kind, m.by_kind
    )
    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select greatest(b.due, p_now), b.channel_id, b.due, b.id, 1, b.priority, b.queue, b.channel,
        case when b.by_kind then '=' || b.kind when b.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from back b;

    if exists (select from sleeper s where s.until > p_now) then
        perform notify_workers_v1(array(
            select k.queue from unnest(p_ids, p_dues) x(id, due)
            cross join lateral (select m.queue from message m where m.id = x.id offset 0) k
            where x.due < p_now + interval '2 seconds'), p_now);
    end if;
end
$$;
