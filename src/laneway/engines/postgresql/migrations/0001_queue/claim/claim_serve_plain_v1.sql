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
            coalesce(t.n >= 0 and t.leased = 0 and (t.pri = '{}' or t.pri = '{0}') and t.credit = floor(t.credit), true)
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
        p.key, p.content_type, p.headers, p.state_type, p.state, p.payload, p.spent,
        null::text, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz,
        null::bigint[], null::timestamptz[], null::timestamptz[], null::boolean
    from picked p;
end
$$;
