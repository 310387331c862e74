-- Part of looks: channels whose names are known, in this order, by index: at most p_most messages of each are
-- counted. exact is false where there are more; then it is at least what was counted, or what the channel's turn says.
create or replace function "laneway".look_named_v1(
    p_queues text[], p_names text[], p_most integer, p_now timestamptz default null
) returns table (
    queue text, channel text, waiting bigint, scheduled bigint, leased bigint, dead bigint, oldest timestamptz,
    exact boolean, concurrency bigint, rate double precision, burst bigint, backlog bigint, weight double precision,
    paused boolean, closing boolean, paused_until timestamptz, throttled boolean, waits_for text
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_changes constant integer := 2000;
begin
    return query
    with change as materialized (
        select d.queue, d.channel, d.n from dead_count d limit v_changes + 1
    ),
    changed as materialized (
        select d.queue, d.channel, sum(d.n) as n from change d group by d.queue, d.channel
    )
    select x.queue, x.name,
        case when m.n > p_most then greatest(m.waiting, t.n) else m.waiting end, m.scheduled, m.leased,
        greatest(coalesce(d.n, 0) + coalesce((
            select e.n from changed e where e.queue = x.queue and e.channel = x.name), 0), 0)::bigint,
        case when isfinite(m.oldest) then m.oldest end,
        m.n <= p_most and (select count(*) from change) <= v_changes,
        c.concurrency, c.rate, c.burst, c.backlog, coalesce(c.weight, 1), coalesce(c.is_paused, false),
        coalesce(c.closing, false), case when c.is_paused then c.paused_until end,
        coalesce(c.is_paused and c.throttled, false),
        waits_for_v1(x.queue, c.is_paused, c.throttled, c.closing, c.concurrency, m.leased, c.rate, t.turn, v_now)
    from (
        select u.queue, u.name, u.ordinal, channel_id_v1(u.queue, u.name) as id
        from unnest(p_queues, p_names) with ordinality u(queue, name, ordinal)
    ) x
    left join lateral (
        select k.*, k.paused and coalesce(k.paused_until > v_now, true) as is_paused
        from channel k where k.id = x.id) c on true
    left join lateral (
        select k.n, k.turn from token k where k.channel_id = x.id order by k.version desc limit 1) t on true
    left join dead_total d on d.queue = x.queue and d.channel = x.name
    cross join lateral (
        select count(*) as n, count(*) filter (where not k.leased and k.due <= v_now) as waiting,
            count(*) filter (where not k.leased and k.due > v_now) as scheduled,
            count(*) filter (where k.leased) as leased,
            min(k.due) filter (where not k.leased and k.due <= v_now) as oldest
        from (
            select j.due, exists (select from lease l where l.message_id = j.id offset 0) as leased
            from message j where j.channel_id = x.id order by j.priority, j.due, j.id limit p_most + 1
        ) k
    ) m
    order by x.ordinal;
end
$$;
