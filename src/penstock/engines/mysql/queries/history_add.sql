-- $1: rows.
insert into `penstock_history` (message_id, fence, attempt, first_published_at, published_at, due,
    claimed_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome,
    reason, error_type, error)
values $1...
