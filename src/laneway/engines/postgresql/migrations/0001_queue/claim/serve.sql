-- Part of claim: what claim_serve_v1 does, for channels without limits, weights and priorities, in a
-- statement of half its size, and so of half its start. It answers the messages with their payloads at
-- once.
--
-- Keeps: what claim_serve_v1 keeps. It changes nothing and answers no row if a token or a wake of these
-- channels knows of anything else (a priority, a count below zero, counted leases, a message that was put
-- back before its time): then claim_serve_v1 must serve them.
--
-- p_channels: the channels in serving order. p_last: the position of the last one that is to be served.
-- p_owned/p_queues: those of them whose rows the caller has locked, with their queues. p_wakes: addresses
-- of wakes that were read. p_unread, p_wake_from: there are more wakes, and where they begin.
-- p_fill: the only channel is to fill the batch.
create or replace function "laneway".claim_serve_plain_v1(
    p_channels uuid[], p_last timestamptz, p_owned uuid[], p_queues text[], p_wakes tid[], p_unread boolean,
    p_wake_from timestamptz, p_fill boolean, p_limit integer, p_lease interval, p_worker text,
    p_quantum integer, p_now timestamptz
) returns setof "laneway".claimed_v1
language plpgsql
as $$
#variable_conflict use_column
declare
    v_fence bigint := nextval('fence');
begin
    return query
    with
    known as materialized (
        select p.ordinal, o.id as channel_id, o.queue, t.tid, coalesce(t.version, 0) as version, t.turn,
            coalesce(t.n, 0) as n, coalesce(t.credit, 0) as credit, t.due[1] as due, t.mid[1] as mid,
            coalesce(t.n >= 0 and t.leased = 0 and t.used is null and (t.pri = '{}' or t.pri = '{0}') and t.credit = floor(t.credit), true)
            and not (p_unread and exists (select from wake w where w.channel_id = o.id and (w.priority > 0 or w.due < w.at)
                and w.at >= p_wake_from and w.at <= p_now offset 0)) as plain
        from unnest(p_owned, p_queues) o(id, queue)
        join unnest(p_channels) with ordinality p(id, ordinal) on p.id = o.id
        left join lateral latest_token_v1(o.id) t on true
    ),
    consumed as (
        delete from wake w where w.ctid = any(p_wakes) and (w.channel_id in (select k.channel_id from known k)) is true
            and (select bool_and(k.plain) from known k)
        returning w.channel_id, w.due, w.message_id, w.n
    ),
    gain as (
        select c.channel_id, sum(c.n)::bigint as n, min(c.due) as due, min(c.message_id) - 1 as mid
        from consumed c group by c.channel_id
    ),
    visit as materialized (
        select l.*, greatest(0, least(l.want, p_limit - (sum(l.want) over w - l.want))) as quota
        from (
            select k.ordinal, k.channel_id, k.queue, k.tid, k.version, k.turn, k.credit,
                k.n + coalesce(g.n, 0) as n,
                k.tid is not null and (k.turn is not null or k.n <> 0 or k.due is not null) as awake,
                k.due is not null as positioned,
                case when (k.due, k.mid) <= (g.due, g.mid) or g.due is null then k.due else g.due end as due,
                case when (k.due, k.mid) <= (g.due, g.mid) or g.due is null then k.mid else g.mid end as mid,
                case when k.credit >= 1 then k.credit else p_quantum end as first,
                -- Its turn is yet to come: count what the wakes say and leave it where it is.
                case when k.turn > p_last and k.turn <= p_now then 0
                    else least(k.n + coalesce(g.n, 0), case
                        when p_fill then p_limit
                        when k.credit >= 1 then k.credit::bigint else p_quantum end) end as want
            from known k left join gain g on g.channel_id = k.channel_id
            where (select bool_and(k.plain) from known k)
        ) l
        window w as (order by l.ordinal rows unbounded preceding)
    ),
    picked as materialized (
        select l.ordinal, l.channel_id, l.queue, m.*
        from (select l.* from visit l order by l.ordinal) l cross join lateral (
            select k.id, k.channel, k.kind, k.attempt, k.max_attempts, k.due, k.published_at,
                k.first_published_at, k.expires_at, k.key, k.content_type, k.headers, k.state_type, k.state, k.payload, k.spent
            from startable_v1(l.channel_id, 0::smallint, l.due, l.mid, p_now) k
            order by k.due, k.id limit l.quota
        ) m
        where l.quota > 0
    ),
    leased as (
        insert into lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
        select p.id, v_fence, p_now + p_lease, p_now, p.channel_id, false, p_worker from picked p
    ),
    next as materialized (
        select l.channel_id, l.queue, l.tid, l.version + 1 as version, l.n - coalesce(t.taken, 0) as n,
            l.n > coalesce(t.taken, 0) and coalesce(t.taken, 0) >= l.quota as more,
            -- A cancelled message may be off the count before its own wake is read: then one more is there
            -- than is counted, which only this position knows of.
            case when l.positioned and l.n = t.taken then exists (
                select from startable_v1(l.channel_id, 0::smallint, t.due, t.last, p_now) offset 0) else false end as rest,
            case when l.quota = l.want and l.want > 0 then 0 when l.quota = 0 then l.credit
                else l.first - coalesce(t.taken, 0) end as credit,
            case when l.quota = l.want and l.want > 0 or l.turn is null or l.turn > p_now then p_now else l.turn end as turn,
            coalesce(t.due, l.due) as due, coalesce(t.last, l.mid) as mid
        from visit l
        left join (
            select p.ordinal, count(*) as taken, max(p.due) as due, (array_agg(p.id))[count(*)] as last
            from picked p group by p.ordinal
        ) t on t.ordinal = l.ordinal
        -- A channel that is at rest and was at rest needs no new version.
        where l.n > 0 and (l.awake or l.n <> coalesce(t.taken, 0))
    ),
    dropped as (
        delete from token k where k.ctid = any(array(select n.tid from next n where n.tid is not null))
    ),
    requeued as (
        insert into token (channel_id, version, turn, n, leased, credit, skips, queue, pri, due, mid)
        select n.channel_id, n.version, case when n.more then n.turn end, n.n, 0, case when n.more then n.credit else 0 end, 0,
            n.queue,
            case when n.more or n.rest then '{0}' else '{}' end::smallint[],
            case when n.more or n.rest then array[n.due] else '{}' end,
            case when n.more or n.rest then array[n.mid] else '{}' end
        from next n
    )
    select p.id, v_fence, p.queue, p.channel, p.kind, 0::smallint, p.attempt + 1, p.max_attempts,
        date_part('epoch', p.due), date_part('epoch', p.published_at),
        date_part('epoch', p.first_published_at), date_part('epoch', p.expires_at),
        substr(p.key, 17), p.content_type, p.headers, p.state_type, p.state, p.payload, p.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean, null::bigint
    from picked p;
end
$$;

-- Part of claim: visit channels of any policy (claim_visit_v1), and answer the messages.
--
-- Keeps: a visit knows every wake that may have to start before those that were read, however many lie
-- between (a higher priority, a message that was put back). The rows are read by their addresses: they
-- are leased to us and the channels are ours, so they stay where the visit saw them.
--
-- p_unread: there are more wakes than those in p_wakes, from p_wake_from on. p_listeners: somebody listens
-- to events. p_pace: what claim_reached_v1 answered, p_all: see claim_pace_v1. The others are those of claim_visit_v1.
create or replace function "laneway".claim_serve_v1(
    p_channels uuid[], p_last timestamptz, p_owned uuid[], p_rows tid[], p_wakes tid[], p_unread boolean,
    p_wake_from timestamptz, p_rounds double precision, p_limit integer, p_lease interval, p_worker text,
    p_quantum integer, p_listeners boolean, p_now timestamptz, p_pace jsonb default null, p_all boolean default false
) returns setof "laneway".claimed_v1
language plpgsql
as $$
declare
    v_wakes tid[] := p_wakes;
    v_fence bigint;
    v_ids bigint[];
    v_tids tid[];
    v_pace record;
    v_starts double precision[];
begin
    if p_unread then
        v_wakes := v_wakes || array(
            select w.tid from unnest(p_owned) o cross join lateral (
                select k.ctid as tid from wake k
                where k.channel_id = o and (k.priority > 0 or k.due < k.at) and k.at >= p_wake_from and k.at <= p_now
                offset 0) w);
    end if;
    if p_pace is not null then
        select * into v_pace from claim_pace_v1(p_pace, p_all, p_owned, p_rows, v_wakes, p_limit, p_now);
        v_starts := v_pace.starts;
    end if;
    select s.fence, s.ids, s.tids into v_fence, v_ids, v_tids
    from claim_visit_v1(
        p_channels, p_last, p_owned, p_rows, v_wakes, p_limit, p_lease, p_worker, p_quantum, p_rounds, p_now, v_starts) s;
    if p_pace is not null then
        perform claim_charge_v1(p_owned, v_pace.used, v_pace.cost, v_pace.each, v_pace.since);
    end if;
    return query
    select m.id, v_fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        date_part('epoch', m.due), date_part('epoch', m.published_at),
        date_part('epoch', m.first_published_at), date_part('epoch', m.expires_at),
        substr(m.key, 17), m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean, null::bigint
    from unnest(v_tids) x(tid)
    cross join lateral (select k.* from message k where k.ctid = x.tid offset 0) m;
    if p_listeners and v_ids is not null then
        perform add_events_v1(array['claimed'], v_ids, p_now);
    end if;
end
$$;

-- Part of claim: the next p_quota messages of a channel that has several priorities, in the order in
-- which they start: the highest priority first, but one start in ten goes to the longest waiting.
-- done: priorities of which nothing is left but what was picked. rest: there are more than the quota.
--
-- Looks from the highest priority down, and not further than it must: once the quota is filled a lower
-- priority can only have the longest waiting, so no more of it is read than are owed such a start.
create or replace function "laneway".claim_pick_v1(
    p_channel_id uuid, p_pri smallint[], p_due timestamptz[], p_mid bigint[], p_quota bigint, p_skips bigint,
    p_now timestamptz,
    out ids bigint[], out tids tid[], out dues timestamptz[], out pris smallint[], out done smallint[], out rest boolean
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_owed bigint := (p_skips + p_quota) / 10;
    v_most bigint;
    v_at record;
    v_found record;
    v_left smallint[];
begin
    ids := '{}'; tids := '{}'; dues := '{}'; pris := '{}'; done := '{}'; rest := false;
    for v_at in
        select h.pri, h.due, h.mid from unnest(p_pri, p_due, p_mid) h(pri, due, mid) order by h.pri desc
    loop
        v_most := greatest(p_quota + 1 - cardinality(ids), v_owed);
        if v_most = 0 then
            rest := true;
            exit;
        end if;
        select array_agg(m.id) as ids, array_agg(m.tid) as tids, array_agg(m.due) as dues, count(*) as n into v_found
        from (
            select k.tid, k.id, k.due from startable_v1(p_channel_id, v_at.pri, v_at.due, v_at.mid, p_now) k
            order by k.due, k.id limit v_most
        ) m;
        if v_found.n < v_most then
            done := done || v_at.pri;
        end if;
        if v_found.n > 0 then
            ids := ids || v_found.ids;
            tids := tids || v_found.tids;
            dues := dues || v_found.dues;
            pris := pris || array_fill(v_at.pri, array[v_found.n::integer]);
        end if;
    end loop;
    rest := rest or cardinality(ids) > p_quota;
    select array_agg(o.id order by o.place) filter (where o.place <= p_quota),
        array_agg(o.tid order by o.place) filter (where o.place <= p_quota),
        array_agg(o.due order by o.place) filter (where o.place <= p_quota),
        array_agg(o.priority order by o.place) filter (where o.place <= p_quota),
        array_agg(o.priority) filter (where o.place > p_quota)
    into ids, tids, dues, pris, v_left
    from (
        select m.*, row_number() over (order by m.young, m.priority desc, m.due, m.id) as place
        from (
            select m.*, row_number() over (order by m.due, m.id) > v_owed as young
            from unnest(ids, tids, dues, pris) m(id, tid, due, priority)
        ) m
    ) o;
    if v_left is not null then
        done := array(select d from unnest(done) d where d <> all(v_left));
    end if;
end
$$;

-- Part of claim: a channel's token. Older versions may still be there, dead but not yet vacuumed;
-- the live one has the highest number, so the index is read backwards and one entry is enough.
--
-- The planner puts the body in place of the call (SQL, stable, no SET), so sharing it costs nothing.
create or replace function "laneway".latest_token_v1(p_channel_id uuid)
returns table (
    tid tid, version bigint, turn timestamptz, n bigint, leased bigint, tat timestamptz,
    credit double precision, skips bigint, pri smallint[], due timestamptz[], mid bigint[],
    used double precision, cost double precision, since timestamptz
)
language sql stable
as $$
    select k.ctid, k.version, k.turn, k.n, k.leased, k.tat, k.credit, k.skips, k.pri, k.due, k.mid, k.used, k.cost, k.since
    from "laneway".token k where k.channel_id = p_channel_id order by k.version desc limit 1
$$;

-- Part of claim: the messages of a channel and priority after a position that may start now: due, not
-- lapsed, not leased, and not of a bulk publish that has not committed. The caller adds `order by due, id limit n`, which the index message_order serves.
--
-- The planner puts the body in place of the call (SQL, stable, no SET), so sharing it costs nothing,
-- and columns that the caller does not name are not read.
create or replace function "laneway".startable_v1(
    p_channel_id uuid, p_priority smallint, p_due timestamptz, p_mid bigint, p_now timestamptz
) returns table (
    tid tid, id bigint, channel text, kind text, attempt bigint, max_attempts integer, due timestamptz,
    published_at timestamptz, first_published_at timestamptz, expires_at timestamptz, key text,
    content_type text, headers jsonb, state_type text, state bytea, payload bytea, spent integer
)
language sql stable
as $$
    select k.ctid, k.id, k.channel, k.kind, k.attempt, k.max_attempts, k.due,
        k.published_at, k.first_published_at, k.expires_at, k.key,
        k.content_type, k.headers, k.state_type, k.state, k.payload, k.spent
    from "laneway".message k
    where k.channel_id = p_channel_id and k.priority = p_priority
        and (k.due, k.id) > (p_due, p_mid) and k.due <= p_now
        and (k.expires_at is null or k.expires_at > p_now)
        and (k.part is null or k.part not in (select p.id from "laneway".staged_part p))
        and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
$$;

-- Part of claim: of two sets of positions, one a priority, the lower ones.
create or replace function "laneway".lowest_positions_v1(
    p_pri smallint[], p_due timestamptz[], p_mid bigint[], q_pri smallint[], q_due timestamptz[], q_mid bigint[]
) returns "laneway".positions_v1
language sql immutable
as $$
    select array_agg(x.pri), array_agg(x.due), array_agg(x.mid)
    from (
        select distinct on (x.pri) x.pri, x.due, x.mid
        from (
            select * from unnest(p_pri, p_due, p_mid)
            union all
            select * from unnest(q_pri, q_due, q_mid)
        ) x(pri, due, mid)
        order by x.pri, x.due, x.mid
    ) x
$$;

-- Part of claim: the positions of a channel with several priorities after its first p_taken messages
-- (of those picked) were taken: the last one of each priority, or the old position. Priorities of which
-- nothing is left (p_done, see claim_pick_v1) have none: the next wake brings one.
create or replace function "laneway".advanced_positions_v1(
    p_pri smallint[], p_due timestamptz[], p_mid bigint[],
    p_pris smallint[], p_dues timestamptz[], p_ids bigint[], p_taken bigint, p_done smallint[]
) returns "laneway".positions_v1
language sql immutable
as $$
    select coalesce(array_agg(b.pri), '{}'), coalesce(array_agg(coalesce(t.due, b.due)), '{}'),
        coalesce(array_agg(coalesce(t.id, b.mid)), '{}')
    from unnest(p_pri, p_due, p_mid) b(pri, due, mid)
    left join (
        select distinct on (t.pri) t.pri, t.due, t.id
        from unnest(p_pris[1 : p_taken], p_dues[1 : p_taken], p_ids[1 : p_taken]) t(pri, due, id)
        order by t.pri, t.due desc, t.id desc
    ) t on t.pri = b.pri
    where b.pri <> all(p_done) or b.pri = any(p_pris[p_taken + 1 :])
$$;
