-- $1 and $2: stamp and id of the last one seen, $3: limit. The first column is for the next position.
select settled, id, message_id, queue, channel, kind, priority, attempt, fence, worker, outcome, reason,
    error_type, error, first_published_at, published_at, due, claimed_at, ended_at, payload_size,
    terminal, dead
from `penstock_history` force index (history_settled)
where (settled = $1 and id > $2) or settled > $1
order by settled, id limit $3
