-- A row of the history as the lake keeps it: a time that never comes is none.
select h.id, h.xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error,
    case when isfinite(h.first_published_at) then h.first_published_at end as first_published_at,
    case when isfinite(h.published_at) then h.published_at end as published_at,
    case when isfinite(h.due) then h.due end as due,
    case when isfinite(h.claimed_at) then h.claimed_at end as claimed_at,
    h.ended_at, h.payload_size, h.terminal, h.dead
from {schema}.history_v1 h
where h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
    and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
