-- View: when each message waited and when it ran, one row for each span, in microseconds. A message that was given
-- back waited all the time. One that ended before it was due (cancelled while scheduled) never waited. Spans of
-- messages that have not ended are open.
select a.queue, a.channel, 'waiting' as state, unix_micros(a.ready) as begins,
    unix_micros(coalesce(a.began, a.ended_at)) as ends, a.began is not null as started, false as alive
from attempt a
where a.ready <= coalesce(a.began, a.ended_at) and a.outcome not in ('given_back', 'stale', 'redriven', 'discarded')
union all
select a.queue, a.channel, 'running', unix_micros(a.began), unix_micros(a.ended_at), false, false
from attempt a
where a.begun
union all
select l.queue, l.channel, 'waiting', unix_micros(l.due), unix_micros(coalesce(l.claimed_at, l.seen_at)),
    l.claimed_at is not null, l.claimed_at is null
from live l
where l.state <> 'dead' and l.due is not null and l.due <= l.seen_at
union all
select l.queue, l.channel, 'running', unix_micros(l.claimed_at), unix_micros(l.seen_at), false, true
from live l
where l.state = 'leased'
