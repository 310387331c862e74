-- set policy: replace the whole policy of some channels, in one transaction.
--
-- Keeps: a limit set now holds from the next claim on. Leases that were claimed without being
-- charged are charged here; those that another transaction has locked at this moment are charged too
-- and written to stray, for upkeep to settle. The charge goes into the token itself, not into a wake: a
-- claim that looked before would serve without having read it. Locks channel rows in id order; leases
-- with SKIP LOCKED.
create or replace function "laneway".set_policy_v1(
    p_queue text, p_channels text[], p_concurrency bigint[], p_rate double precision[], p_burst bigint[],
    p_backlog bigint[], p_weight double precision[], p_now timestamptz default null
) returns void
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz := write_time_v1(p_now);
    v_limited uuid[];
    v_charged uuid[];
begin
    perform lock_channels_v1(array_fill(p_queue, array[cardinality(p_channels)]), p_channels);

    v_limited := array(
        select channel_id_v1(p_queue, x.name) from unnest(p_channels, p_concurrency) x(name, concurrency)
        where x.concurrency is not null);
    update channel c set
        concurrency = x.concurrency, rate = x.rate, burst = x.burst, backlog = x.backlog, weight = x.weight,
        closing = false
    from unnest(p_channels, p_concurrency, p_rate, p_burst, p_backlog, p_weight)
        x(name, concurrency, rate, burst, backlog, weight)
    where c.id = channel_id_v1(p_queue, x.name);

    if cardinality(v_limited) > 0 then
        with open as (
            select l.message_id from lease l where l.channel_id = any(v_limited) and not l.counted
                -- A row in stray is charged already.
                and not exists (select from stray s where s.message_id = l.message_id and s.fence = l.fence)
            order by l.message_id for update skip locked
        ),
        charged as (
            update lease l set counted = true from open o where l.message_id = o.message_id returning l.channel_id
        )
        select array_agg(c.channel_id) into v_charged from charged c;
        with late as (
            insert into stray (message_id, fence, channel_id, queue, channel)
            select l.message_id, l.fence, l.channel_id, c.queue, c.name
            from lease l join channel c on c.id = l.channel_id
            where l.channel_id = any(v_limited) and not l.counted
                and not exists (select from stray s where s.message_id = l.message_id and s.fence = l.fence)
            returning channel_id
        )
        select v_charged || array_agg(l.channel_id) into v_charged from late l;
    end if;

    with charge as materialized (
        select x.id, count(*) as leased from unnest(v_charged) x(id) group by x.id
    ),
    -- Of the starts under another rate, only this is kept: that the burst is used up.
    latest as materialized (
        select channel_id_v1(p_queue, x.name) as id, v_now + ceil(x.burst / x.rate * 1e6) * interval '1 microsecond' as tat
        from unnest(p_channels, p_rate, p_burst) x(name, rate, burst) where x.rate is not null
    ),
    changed as materialized (
        select coalesce(c.id, l.id) as id, coalesce(c.leased, 0) as leased, l.tat
        from charge c full join latest l on l.id = c.id
        where c.id is not null or exists (select from token t where t.channel_id = l.id and t.tat > l.tat)
    ),
    old as (
        delete from token t where t.channel_id in (select x.id from changed x) returning t.*
    )
    insert into token (channel_id, version, turn, n, leased, tat, credit, skips, queue, pri, due, mid,
        lanes, slots, turns)
    select x.id, coalesce(o.version, 0) + 1, o.turn, coalesce(o.n, 0), coalesce(o.leased, 0) + x.leased, least(o.tat, x.tat),
        coalesce(o.credit, 0), coalesce(o.skips, 0), p_queue,
        coalesce(o.pri, '{}'), coalesce(o.due, '{}'), coalesce(o.mid, '{}'), o.lanes, o.slots, o.turns
    from changed x left join old o on o.channel_id = x.id;

    insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
    select v_now, c.id, v_now, 0, 0, 0, c.queue, c.name,
        case when c.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
    from channel c where c.id in (select channel_id_v1(p_queue, x.name) from unnest(p_channels) x(name));
    perform notify_workers_v1(array[p_queue], v_now);
end
$$;
