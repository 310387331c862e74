-- The history with its day, slot and hour; what never comes is none. Time in a worker's own queue is waiting.
select h.id, h.message_id, h.queue, h.channel, h.kind, h.attempt, h.worker, h.outcome, h.reason, h.error_type, h.error,
    coalesce(h.started_at, h.claimed_at) as claimed_at, h.ended_at, h.payload_size, h.terminal, h.dead,
    (h.ended_at at time zone 'UTC')::date as day,
    date_bin('5 minutes', h.ended_at, timestamptz 'epoch') as slot,
    date_bin('1 hour', h.ended_at, timestamptz 'epoch') as hour,
    greatest(nullif(h.due, 'infinity'), h.published_at) as ready,
    h.claimed_at is not null and h.outcome <> 'given_back' as begun,
    h.outcome in ('retried', 'failed', 'expired') as failing,
    h.published_at is distinct from h.first_published_at and h.published_at is not null as came_back,
    case when h.claimed_at is not null and h.outcome <> 'given_back' then greatest(0,
        extract(epoch from coalesce(h.started_at, h.claimed_at) - greatest(nullif(h.due, 'infinity'), h.published_at)) * 1000000)::bigint end as waited,
    case when h.claimed_at is not null and h.outcome <> 'given_back' then greatest(0,
        extract(epoch from h.ended_at - coalesce(h.started_at, h.claimed_at)) * 1000000)::bigint end as ran
from history_v1 h
