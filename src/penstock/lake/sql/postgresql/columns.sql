-- A row of the history as the lake keeps it: a time that never comes, or that no calendar of Arrow has, is none.
select h.id, h.xid, h.message_id, h.queue, h.channel, h.kind, h.priority, h.attempt, h.fence, h.worker, h.outcome,
    h.reason, h.error_type, h.error,
    case when h.first_published_at between c.first and c.last then h.first_published_at end as first_published_at,
    case when h.published_at between c.first and c.last then h.published_at end as published_at,
    case when h.due between c.first and c.last then h.due end as due,
    case when h.claimed_at between c.first and c.last then h.claimed_at end as claimed_at,
    h.ended_at, h.payload_size, h.terminal, h.dead
from {schema}.history_v1 h,
    (select timestamptz '0001-01-01 00:00Z' as first, timestamptz '9999-12-31 23:59:59.999999Z' as last) c
where h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
    and h.xid <= {to_xid} and (h.xid, h.id) <= ({to_xid}, {to_id})
