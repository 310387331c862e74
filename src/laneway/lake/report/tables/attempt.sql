-- View: the history with what all tables need: the 5-minute slot and the hour in which it ended, whether work
-- had started, waiting and running time in microseconds, and the signature of its failure.
select h.*,
    -- Time in a worker's own queue is waiting: work begins when its handler does.
    coalesce(h.started_at, h.claimed_at) as began,
    -- Waiting counts from when it was due, but not from before it was published.
    greatest(h.due, h.published_at) as ready,
    timestamp_seconds(floor(unix_seconds(h.ended_at) / 300) * 300) as slot,
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
