copy {schema}.history (message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason, error_type, error,
    first_published_at, published_at, due, claimed_at, ended_at, payload_size, terminal, dead)
from stdin (format csv, encoding 'UTF8')
