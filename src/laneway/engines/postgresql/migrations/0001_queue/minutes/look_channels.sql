-- channels: those of the queues (null: all) that hold anything or have a policy, the fullest first, then by name, after
-- the one that was seen last (p_seen: its waiting, queue and name).
--
-- If the rows that were read (look_v1) were not all there are, complete is false: then these are the fullest of what was
-- read, at least as full as it says; those that have names in the rows, if a prefix is asked for; and none if only those
-- with a policy or a pause are. The caller goes on with channel_names_v1. One row without a channel says so where none
-- was found.
create or replace function "laneway".look_channels_v1(
    p_queue text, p_prefix text, p_paused boolean, p_limited boolean, p_limit integer, p_most integer,
    p_seen bigint default null, p_seen_queue text default null, p_seen_channel text default null,
    p_now timestamptz default null
) returns table (
    complete boolean, looked bigint, queue text, channel text, waiting bigint, scheduled bigint, leased bigint, dead bigint,
    oldest timestamptz, exact boolean, concurrency bigint, rate double precision, burst bigint, backlog bigint,
    weight double precision, paused boolean, closing boolean, paused_until timestamptz, throttled boolean, waits_for text
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_queues text[] := case when p_queue is null then look_queues_v1(1000, true) else array[p_queue] end;
    v_policies bigint;
begin
    v_policies := (
        select count(*) from (
            select from channel c
            where (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null or c.paused
                or c.closing) and c.queue = any(v_queues)
            limit p_most + 1) x);
    return query
    with part as materialized (
        select * from look_v1(v_queues, p_most, v_now)
    ),
    cut as materialized (
        select not exists (select from part p where p.channel_id is null) and v_policies <= p_most as complete,
            (select sum(p.looked) from part p) + v_policies as looked
    ),
    held as materialized (
        select p.queue, p.channel_id, min(p.channel) as channel, greatest(sum(p.waiting), 0) as waiting,
            greatest(sum(p.scheduled), 0) as scheduled, sum(p.leased) as leased, sum(p.dead) as dead,
            case when sum(p.waiting) > 0 then min(p.oldest) end as oldest, max(p.turn) as turn
        from part p where p.channel_id is not null group by p.queue, p.channel_id
        having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0
    ),
    chosen as materialized (
        select h.* from held h, cut k where k.complete
        union all
        (select h.* from held h, cut k
        where not k.complete and p_seen is null and p_paused is not true and p_limited is not true
            and (p_prefix is null or starts_with(h.channel, p_prefix))
        order by h.waiting desc, h.oldest limit p_limit)
    ),
    listed as (
        select coalesce(c.queue, h.queue) as queue, coalesce(c.name, h.channel) as channel,
            coalesce(h.waiting, 0)::bigint as waiting, coalesce(h.scheduled, 0)::bigint as scheduled,
            coalesce(h.leased, 0)::bigint as leased, coalesce(h.dead, 0)::bigint as dead,
            case when isfinite(h.oldest) then h.oldest end as oldest, k.complete as exact, c.concurrency, c.rate, c.burst,
            c.backlog, coalesce(c.weight, 1) as weight, coalesce(c.is_paused, false) as paused,
            coalesce(c.closing, false) as closing, case when c.is_paused then c.paused_until end as paused_until,
            coalesce(c.is_paused and c.throttled, false) as throttled,
            waits_for_v1(h.queue, c.is_paused, c.throttled, c.closing, c.concurrency, h.leased::bigint, c.rate, h.turn, v_now) as waits_for
        from chosen h
        left join lateral (
            select j.*, j.paused and coalesce(j.paused_until > v_now, true) as is_paused
            from channel j where j.id = h.channel_id) c on true
        cross join cut k
        union all
        select c.queue, c.name, 0, 0, 0, 0, null, true, c.concurrency, c.rate, c.burst, c.backlog, c.weight, x.paused,
            c.closing, case when x.paused then c.paused_until end, x.paused and c.throttled,
            waits_for_v1(c.queue, x.paused, c.throttled, c.closing, c.concurrency, 0, null, null, v_now)
        from channel c
        cross join lateral (select c.paused and coalesce(c.paused_until > v_now, true) as paused) x
        cross join cut k
        where (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null or c.paused
                or c.closing)
            and c.queue = any(v_queues) and k.complete
            and not exists (select from chosen h where h.channel_id = c.id)
    ),
    page as (
        select l.* from listed l
        where (p_prefix is null or starts_with(l.channel, p_prefix))
            and (p_paused is null or l.paused = p_paused)
            and (p_limited is null or p_limited = (l.weight <> 1 or l.concurrency is not null or l.rate is not null
                or l.backlog is not null or l.paused or l.closing))
            and (p_seen is null or (-l.waiting, l.queue, l.channel) > (-p_seen, p_seen_queue, p_seen_channel))
        order by l.waiting desc, l.queue, l.channel limit p_limit + 1
    )
    select k.complete, k.looked::bigint, p.* from cut k left join page p on true
    order by p.waiting desc, p.queue, p.channel;
end
$$;

-- Part of channels: the next channels by (queue, name) that were claimed from or have a policy, p_limit at most, from
-- at most p_most rows. Answers how many rows were read, and the last one's names unless there are no more.
create or replace function "laneway".channel_names_v1(
    p_queue text, p_prefix text, p_paused boolean, p_limited boolean, p_after_queue text, p_after_channel text,
    p_limit integer, p_most integer,
    out queues text[], out names text[], out looked bigint, out last_queue text, out last_channel text
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_queue text;
    v_after text := p_after_channel;
    v_least text := coalesce(p_prefix, '');
    v_rows refcursor;
    v_row record;
begin
    queues := '{}';
    names := '{}';
    looked := 0;
    v_queue := coalesce(p_queue, (select min(c.queue) from channel c where c.queue >= p_after_queue));
    while v_queue is not null loop
        if v_queue <> p_after_queue then
            v_after := '';
        end if;
        -- Two statements, each along its index.
        if p_paused or p_limited then
            open v_rows for
            select c.name, c.paused, true as limited from channel c
            where c.queue = v_queue and c.name > v_after and c.name >= v_least
                and (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null
                    or c.paused or c.closing)
            order by c.name limit p_most - looked;
        else
            open v_rows for
            select c.name, c.paused, c.weight <> 1 or c.concurrency is not null or c.rate is not null
                or c.backlog is not null or c.paused or c.closing as limited
            from channel c where c.queue = v_queue and c.name > v_after and c.name >= v_least
            order by c.name limit p_most - looked;
        end if;
        loop
            fetch v_rows into v_row;
            exit when not found;
            exit when p_prefix is not null and not starts_with(v_row.name, p_prefix);
            looked := looked + 1;
            last_queue := v_queue;
            last_channel := v_row.name;
            if (p_paused is null or v_row.paused = p_paused) and (p_limited is null or v_row.limited = p_limited) then
                queues := queues || v_queue;
                names := names || v_row.name;
            end if;
            if cardinality(names) >= p_limit or looked >= p_most then
                close v_rows;
                return;
            end if;
        end loop;
        close v_rows;
        v_queue := case when p_queue is null then (select min(c.queue) from channel c where c.queue > v_queue) end;
    end loop;
    last_queue := null;
    last_channel := null;
end
$$;

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
            from message j where j.channel_id = x.id and (j.part is null or j.part not in (select p.id from staged_part p))
            order by j.priority, j.due, j.id limit p_most + 1
        ) k
    ) m
    order by x.ordinal;
end
$$;
