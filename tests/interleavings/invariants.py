"""What must hold in every committed snapshot, as plain SQL over the private tables.

One statement, so all of it is judged at one instant. An empty answer means that all is well. It
expects READ COMMITTED, the history setting 'all', and a history that still holds every row.
"""

from collections.abc import Iterable
from typing import Any

import psycopg

_VIOLATIONS = """
with
known as (
    select id, 'message' as place from message
    union all select id, 'dead' from dead
    union all select message_id, 'finished' from history where terminal
),
lane as (
    select channel_id from message union select channel_id from token
    union select channel_id from wake union select channel_id from lease
    union select channel_id from stray
),
sums as (
    select l.channel_id,
        (select count(*) from message m where m.channel_id = l.channel_id
            and not exists (select from lease e where e.message_id = m.id)) as waiting,
        (select count(*) from lease e where e.channel_id = l.channel_id and e.counted) as counted,
        (select count(*) from stray s where s.channel_id = l.channel_id) as strays,
        (select count(*) from token t where t.channel_id = l.channel_id) as tokens,
        coalesce((select sum(t.n) from token t where t.channel_id = l.channel_id), 0)
            + coalesce((select sum(w.n) from wake w where w.channel_id = l.channel_id), 0) as n,
        coalesce((select sum(t.leased) from token t where t.channel_id = l.channel_id), 0)
            - coalesce((select sum(w.freed) from wake w where w.channel_id = l.channel_id), 0)
            as leased
    from lane l
)
select 'message ' || k.id || ' is in ' || string_agg(k.place, ' and ')
from known k group by k.id having count(*) > 1
union all
select 'message ' || p.id || ' is lost'
from unnest(%(published)s::bigint[]) p(id)
where not exists (select from known k where k.id = p.id)
union all
select 'message ' || k.id || ' was never published'
from known k where %(all)s and k.id <> all(%(published)s::bigint[])
union all
select 'lease of message ' || l.message_id || ', which does not exist'
from lease l where not exists (select from message m where m.id = l.message_id)
union all
select 'lease of message ' || l.message_id || ' in a channel that is not its own'
from lease l join message m on m.id = l.message_id where m.channel_id <> l.channel_id
union all
select 'channel ' || s.channel_id || ' counts ' || s.n || ' waiting, there are ' || s.waiting
from sums s where s.n <> s.waiting
union all
select 'channel ' || s.channel_id || ' counts ' || s.leased || ' leased, there are ' || s.counted
    || ' and ' || s.strays || ' strays'
from sums s where s.leased <> s.counted + s.strays
union all
select 'channel ' || s.channel_id || ' has ' || s.tokens || ' tokens' from sums s where s.tokens > 1
union all
select 'token of channel ' || t.channel_id || ', which has no row'
from token t where not exists (select from channel c where c.id = t.channel_id)
union all
select 'lease of message ' || l.message_id || ' in a limited channel is not charged'
from lease l join channel c on c.id = l.channel_id
where c.concurrency is not null and not l.counted
    and not exists (select from stray s where s.message_id = l.message_id and s.fence = l.fence)
union all
select 'stray of message ' || s.message_id || ' is charged twice'
from stray s join lease l on l.message_id = s.message_id and l.fence = s.fence where l.counted
union all
select 'message ' || m.id || ' lies before every position'
from message m
where not exists (select from lease l where l.message_id = m.id)
    and (m.expires_at is null or m.expires_at > clock_timestamp())
    and not exists (
        select from token t, unnest(t.pri, t.due, t.mid, t.lanes) p(pri, due, mid, lane)
        where t.channel_id = m.channel_id and p.pri = m.priority and (p.due, p.mid) < (m.due, m.id)
            and (p.lane is null or p.lane = '-' or p.lane = '=' || m.kind and m.by_kind))
    and not exists (
        select from wake w
        where (w.lane in ('', '-') or w.lane = '=' || m.kind and m.by_kind)
            and w.channel_id = m.channel_id and w.n > 0 and w.priority = m.priority
            and (w.due, w.message_id) <= (m.due, m.id))
union all
select 'channel ' || c.name || ' is parked with work and room'
from token t join channel c on c.id = t.channel_id
where t.turn is null and t.n > 0 and cardinality(t.pri) > 0 and not c.paused
    and (c.concurrency is null or t.leased < c.concurrency)
    and not exists (select from wake w where w.channel_id = t.channel_id)
union all
select 'fence ' || l.fence || ' of message ' || l.message_id || ' did not rise'
from lease l
where l.fence > (select last_value from fence) or exists (
    select from history h
    where h.message_id = l.message_id and h.outcome <> 'stale' and h.fence >= l.fence)
union all
select 'fence ' || h.fence || ' of message ' || h.message_id || ' ended twice'
from history h where h.fence is not null and h.outcome <> 'stale'
group by h.message_id, h.fence having count(*) > 1
union all
select 'key ' || m.key || ' of message ' || m.id || ' is not taken'
from (select id, queue, key from message union all select id, queue, key from dead) m
where m.key is not null and not exists (
    select from dedupe d
    where (d.queue, d.key) = (m.queue, m.key) and m.id in (d.message_id, d.behind))
union all
select 'message ' || d.message_id || ' waits behind one that does not exist: ' || d.behind
from dedupe d
where d.behind is not null and not exists (select from message m where m.id = d.behind)
union all
select 'message ' || m.id || ' waits behind nothing'
from message m where m.due >= '5000-01-01 00:00:00+00' and not exists (
    select from dedupe d where d.message_id = m.id and d.behind is not null)
union all
select 'the key ' || m.key || ' runs ' || count(*) || ' times'
from message m join lease l on l.message_id = m.id where m.key is not null
group by m.queue, m.key having count(*) > 1
union all
select 'key ' || d.key || ' is held by nothing'
from dedupe d
where d.expires_at is null
    and not exists (select from message m where m.id = d.message_id)
    and not exists (select from dead m where m.id = d.message_id)
union all
select 'message ' || w.message_id || ' waits for limits ' || w.limits || ', and nobody will look'
from limit_wait w join message m on m.id = w.message_id
where w.released is null and m.due > clock_timestamp() and (
    not exists (
        select from limit_lane l
        where l.limits = w.limits and l.channel_id = w.channel_id and l.waiting)
    or not exists (select from limit_queue q where q.limits = w.limits and q.queue = m.queue))
union all
select 'dead letters of ' || channel || ': ' || sum(n) || ' counted, ' || sum(real) || ' there'
from (
    select queue, channel, n, 0 as real from dead_count
    union all
    select queue, channel, n, 0 as real from dead_total
    union all select queue, channel, 0, 1 from dead
) d
group by queue, channel having sum(n) <> sum(real)
union all
select 'node ' || n.id || ' is ' || n.state || ' and is not where it should be'
from flow_node n
where (n.state = 'live') <> exists (
        select from message m where m.id = n.id and m.flow_id = n.flow_id)
    or (n.state = 'dead') <> exists (
        select from dead d where d.id = n.id and d.flow_id = n.flow_id)
    or (n.state = 'held') <> exists (select from flow_held h where h.id = n.id and h.adder is null)
union all
select 'message ' || m.id || ' belongs to a flow and is no node of it'
from message m
where m.flow_id is not null and not exists (
    select from flow_node n where n.id = m.id and n.flow_id = m.flow_id)
union all
select 'node ' || n.id || ' counts ' || n.pending || ' parents and ' || n.missed
    || ' missed, it has ' || e.open || ' and ' || e.missed
from flow_node n
cross join lateral (
    select count(*) filter (where not e.decided) as open,
        count(*) filter (where e.decided and (e.state <> 'completed' or e.died and not e.strict))
            as missed
    from (
        select p.state, p.died, e.strict,
            (p.state not in ('held', 'live', 'dead') or p.died and not e.strict) and not exists (
                select from flow_undecided u where u.parent = p.id and u.start <= n.id
                    and case when e.strict then u.strict else u.others end) as decided
        from flow_edge e join flow_node p on p.id = e.parent where e.child = n.id
    ) e
) e
where n.state = 'held' and (n.pending <> e.open or n.missed <> e.missed or n.pending = 0)
union all
select 'flow ' || f.id || ' counts its nodes wrongly: ' || f::text || ', they are ' || n::text
from flow_v1 f
cross join lateral (
    select count(*) filter (where n.state = 'held') as held,
        count(*) filter (where n.state = 'live') as live,
        count(*) filter (where n.state = 'dead') as dead,
        count(*) filter (where n.state = 'completed') as completed,
        count(*) filter (where n.state in ('cancelled', 'lapsed', 'discarded')) as failed,
        count(*) filter (where n.state = 'skipped') as skipped
    from flow_node n where n.flow_id = f.id
) n
where (f.held, f.live, f.dead, f.completed, f.failed, f.skipped)
    <> (n.held, n.live, n.dead, n.completed, n.failed, n.skipped)
"""

_OVER_LIMIT = """
select 'channel ' || c.name || ' has ' || count(*) || ' leases, its limit is ' || c.concurrency
from lease l join channel c on c.id = l.channel_id
group by c.id having count(*) > c.concurrency
"""


def violations(
    connection: psycopg.Connection[Any],
    published: Iterable[int] | None = None,
    schema: str = "laneway",
) -> list[str]:
    """Every broken promise, in words.

    published: the ids of all committed publishes, if the caller knows them: then one that is
    missing, or one too many, is found too.
    """
    ledger = list(published) if published is not None else []
    params = {"published": ledger, "all": published is not None}
    return _words(connection, schema, _VIOLATIONS, params)


def over_limit(connection: psycopg.Connection[Any], schema: str = "laneway") -> list[str]:
    """Channels with more leases than their limit; right after it was lowered that is fine."""
    return _words(connection, schema, _OVER_LIMIT, {})


def _words(
    connection: psycopg.Connection[Any], schema: str, query: str, params: dict[str, Any]
) -> list[str]:
    with connection.transaction():
        connection.execute(
            "select set_config('search_path', quote_ident(%s) || ', pg_temp', true)", [schema]
        )
        # Bytes: a query that is a variable, and no literal, is what psycopg's types refuse.
        return [row[0] for row in connection.execute(query.encode(), params)]
