-- Queries of the views that the daily tables (tables.sql) read, in the same SQL. What is kept for several tables, and what
-- it reads, has no "with": Spark would not find it again.

-- name: attempt
-- View: the history with what all tables need: the 5-minute slot and the hour in which it ended, whether work
-- had started, waiting and running time in microseconds, and the signature of its failure.
select h.*,
    -- Time in a worker's own queue is waiting: work begins when its handler does.
    coalesce(h.started_at, h.claimed_at) as began,
    -- Waiting counts from when it was due, but not from before it was published.
    greatest(h.due, h.published_at) as ready,
    timestamp_micros(floor(unix_micros(h.ended_at) / 300e6) * 300000000) as slot,
    date_trunc('HOUR', h.ended_at) as hour,
    h.claimed_at is not null and h.outcome <> 'given_back' as begun,
    case when h.claimed_at is not null and h.outcome <> 'given_back'
        then greatest(unix_micros(coalesce(h.started_at, h.claimed_at)) - unix_micros(greatest(h.due, h.published_at)), 0) end as wait_us,
    case when h.claimed_at is not null and h.outcome <> 'given_back'
        then greatest(unix_micros(h.ended_at) - unix_micros(coalesce(h.started_at, h.claimed_at)), 0) end as run_us,
    h.outcome in ('retried', 'failed', 'expired') as failing,
    -- A redrive publishes again but keeps first_published_at.
    coalesce(h.published_at > h.first_published_at, false) as redriven_before
from history h

-- name: told
-- View: failures, with the type and the text of each.
select a.*,
    coalesce(a.error_type, case when a.outcome = 'expired' then 'LeaseExpired' else a.reason end, 'unknown') as type,
    coalesce(a.error, case when a.outcome = 'expired' then 'the lease ran out' end, '') as said
from attempt a where a.failing

-- name: signature
-- View: the signature of a failure, the same for the same defect: the type of the error, the innermost frame of
-- the user's own code if the text is a traceback, and the last line with numbers and ids masked. SQLite has no such
-- expressions: small.py has its own.
with seen as (
    select t.*,
        try_element_at(filter(
            regexp_extract_all(t.said, r'File "[^"]+", line \d+, in \S+', 0),
            line -> not line rlike r'site-packages|/lib/python|/laneway/'), -1) as own,
        regexp_extract(t.said, r'([^\n]*\S)\s*$', 1) as last_line
    from told t
)
select s.*,
    concat_ws(' in ',
        regexp_extract(s.own, r'([^/"]+)", line', 1), regexp_extract(s.own, r', in (\S+)', 1)) as frame,
    left(regexp_replace(regexp_replace(regexp_replace(s.last_line,
        r'[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', '<id>'),
        r'0x[0-9a-fA-F]+', '<address>'),
        r'[0-9]+', '#'), 200) as text
from seen s

-- name: span
-- View: when each message became due, stopped waiting and ended, one row for each attempt, in microseconds. due_us is null
-- if it did not wait, ended_us if it did not run. A message that was given back waited all the time. One that ended
-- before it was due (cancelled while scheduled) never waited. Messages that have not ended are alive.
select a.queue, a.channel, a.began is not null as started, false as alive,
    case when a.ready <= coalesce(a.began, a.ended_at) and a.outcome not in ('given_back', 'stale', 'redriven', 'discarded')
        then unix_micros(a.ready) end as due_us,
    unix_micros(coalesce(a.began, a.ended_at)) as began_us,
    case when a.begun then unix_micros(a.ended_at) end as ended_us
from attempt a
union all
select l.queue, l.channel, l.claimed_at is not null, true,
    case when l.due <= l.seen_at then unix_micros(l.due) end, unix_micros(coalesce(l.claimed_at, l.seen_at)),
    case when l.state = 'leased' then unix_micros(l.seen_at) end
from live l
where l.state <> 'dead'

-- name: bundle
-- View: the spans that lie in the same slots, added up: few spans leave their slot, so this is a fraction of them, and
-- several tables read it instead. A place is twice the number of the 5-minute slot, and one more if the time is not the
-- slot's very beginning. due, began and ended are sums of microseconds since their hours began.
select s.queue, s.channel, s.started,
    s.due_us div 300000000 * 2 + case when s.due_us % 300000000 = 0 then 0 else 1 end as due_at,
    s.began_us div 300000000 * 2 + case when s.began_us % 300000000 = 0 then 0 else 1 end as began_at,
    s.ended_us div 300000000 * 2 + case when s.ended_us % 300000000 = 0 then 0 else 1 end as ended_at,
    count(*) as n, min(s.due_us) as first_due, min(s.began_us) as first_began,
    sum(s.due_us % 3600000000) as due, sum(s.began_us % 3600000000) as began, sum(s.ended_us % 3600000000) as ended
from span s where s.due_us is not null or s.ended_us is not null
group by s.queue, s.channel, s.started, due_at, began_at, ended_at

-- name: stretch
-- View: what waits and what runs, from the bundles: the slots and hours in which it begins and ends, and the borders of
-- slots that it crosses. An hour ends with its last microsecond: what ends with the hour does not reach into the next.
-- begins and ends are sums of microseconds since first_hour and last_hour began.
select p.queue, p.channel, p.state, p.started, p.opens div 2 as first_slot, p.closes div 2 as last_slot,
    (p.opens + 1) div 2 as first_border, (p.closes + 1) div 2 - 1 as last_border, p.first_hour, p.last_hour, p.n, p.oldest,
    p.opened as begins, p.closed + (p.closes div 24 - p.last_hour) * p.n * 3600000000 as ends
from (
    select l.*, l.opens div 24 as first_hour, greatest((l.closes + 23) div 24 - 1, l.opens div 24) as last_hour
    from (
        select b.queue, b.channel, 'waiting' as state, b.started, b.due_at as opens, b.began_at as closes, b.n,
            b.first_due as oldest, b.due as opened, b.began as closed
        from bundle b where b.due_at is not null
        union all
        select b.queue, b.channel, 'running', b.started, b.began_at, b.ended_at, b.n, b.first_began, b.began, b.ended
        from bundle b where b.ended_at is not null
    ) l
) p

-- name: busy
-- View: how long messages waited and ran in each hour, in all [hour, queue]; hours are counted from 1970. Stretches of the
-- same hours are summed before they are spread over the hours.
select s.queue, s.hour, sum(case when s.state = 'waiting' then s.us else 0 end) as waited_us,
    sum(case when s.state = 'running' then s.us else 0 end) as ran_us
from (
    select p.queue, p.state, h.value as hour,
        case when h.value = p.last_hour then p.ends else p.n * 3600000000 end
            - case when h.value = p.first_hour then p.begins else 0 end as us
    from (
        select g.queue, g.state, g.first_hour, g.last_hour, sum(g.n) as n, sum(g.begins) as begins, sum(g.ends) as ends
        from stretch g
        group by g.queue, g.state, g.first_hour, g.last_hour
    ) p
    lateral view explode(sequence(p.first_hour, p.last_hour)) h as value
) s
group by s.queue, s.hour

-- name: route
-- View: every queue, channel and kind of the history, and a number for each, by which large tables are grouped: that is much
-- faster than by three texts. of_queue, of_channel and of_kind are the number of one route that stands for all of its queue,
-- and for all of the same channel or kind there.
select n.*, min(n.route) over (partition by n.queue) as of_queue,
    min(n.route) over (partition by n.queue, n.channel) as of_channel, min(n.route) over (partition by n.queue, n.kind) as of_kind
from (
    select m.*, row_number() over (order by m.queue, m.channel, m.kind) as route
    from (select distinct a.queue, a.channel, a.kind from attempt a) m
) n
