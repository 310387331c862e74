-- limit: change the limits of a channel that p_named names (null removes one) and no others, in a
-- transaction of our own; returns the policy that holds now.
--
-- Keeps: of two callers that change different limits at the same time, both changes hold, because
-- the other limits are read under the channel's lock. A new rate has a burst of its own, one second's
-- worth, unless one is named. Writes nothing and returns no row if a burst has no rate to go with, or
-- would last longer than a century. Locks like set_policy_v1.
create or replace function "laneway".limit_v1(
    p_queue text, p_channel text, p_named text[], p_concurrency bigint, p_rate double precision,
    p_burst bigint, p_backlog bigint, p_weight double precision, p_now timestamptz default null
) returns table (
    concurrency bigint, rate double precision, burst bigint, backlog bigint, weight double precision,
    paused boolean, closing boolean, paused_until timestamptz, throttled boolean)
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_id uuid := channel_id_v1(p_queue, p_channel);
    v_old channel;
    v_rate double precision;
    v_burst bigint;
begin
    perform lock_channels_v1(array[p_queue], array[p_channel]);
    select c.* into strict v_old from channel c where c.id = v_id;

    v_rate := case when 'rate' = any(p_named) then p_rate else v_old.rate end;
    v_burst := case
        when 'burst' = any(p_named) then p_burst when 'rate' = any(p_named) then null else v_old.burst end;
    if v_burst is null and v_rate is not null then
        v_burst := greatest(1, ceil(v_rate));
    end if;
    if v_burst is not null and (v_rate is null or v_burst / v_rate > 100 * 366 * 86400.0) then
        return;
    end if;

    perform set_policy_v1(
        p_queue, array[p_channel],
        array[case when 'concurrency' = any(p_named) then p_concurrency else v_old.concurrency end],
        array[v_rate], array[v_burst],
        array[case when 'backlog' = any(p_named) then p_backlog else v_old.backlog end],
        array[case when 'weight' = any(p_named) then p_weight else v_old.weight end], p_now);
    return query
    select c.concurrency, c.rate, c.burst, c.backlog, c.weight,
        c.paused and coalesce(c.paused_until > coalesce(p_now, clock_timestamp()), true), c.closing, c.paused_until, c.throttled
    from channel c where c.id = v_id;
end
$$;
