-- View: the history with what all tables need: the slot (5 minutes) and the hour it ended in, whether
-- work was begun, how long it waited since it was ready and ran, in microseconds, and which failure it was.
select h.*,
    -- It waits from when it is due, but not from before it was there.
    greatest(h.due, h.published_at) as ready,
    timestamp_seconds(floor(unix_seconds(h.ended_at) / 300) * 300) as slot,
    date_trunc('HOUR', h.ended_at) as hour,
    h.claimed_at is not null and h.outcome <> 'given_back' as begun,
    case when h.claimed_at is not null and h.outcome <> 'given_back'
        then greatest(unix_micros(h.claimed_at) - unix_micros(greatest(h.due, h.published_at)), 0) end as wait_us,
    case when h.claimed_at is not null and h.outcome <> 'given_back'
        then greatest(unix_micros(h.ended_at) - unix_micros(h.claimed_at), 0) end as run_us,
    h.outcome in ('retried', 'failed', 'expired') as failing,
    -- A redrive publishes anew but keeps the first time.
    coalesce(h.published_at > h.first_published_at, false) as redriven_before
from history h
