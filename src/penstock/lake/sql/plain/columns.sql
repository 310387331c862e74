select h.id, {xid} as xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error, h.first_published_at, h.published_at, h.due, h.claimed_at, h.ended_at, h.payload_size,
    h.terminal, h.dead
from {history} h
where {after} and {upto}
order by {order}
