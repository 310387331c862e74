-- From when to when each message waited and was worked on.
select f.queue, f.channel, 'waiting' as state, f.ready as begins, coalesce(f.claimed_at, f.ended_at) as ends,
    f.claimed_at is not null as started
from fact f
where f.outcome in ('completed', 'deferred', 'retried', 'failed', 'expired', 'cancelled', 'lapsed')
    and f.ready <= coalesce(f.claimed_at, f.ended_at)
union all
select f.queue, f.channel, 'running', f.claimed_at, f.ended_at, false from fact f where f.begun
union all
select l.queue, l.channel, 'waiting', l.due, coalesce(l.claimed_at, l.seen_at), l.claimed_at is not null
from live l
where l.state in ('waiting', 'leased', 'scheduled') and l.due <= l.seen_at
union all
select l.queue, l.channel, 'running', l.claimed_at, l.seen_at, false from live l where l.state = 'leased'
