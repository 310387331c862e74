select {columns}
from (
    select m.id, m.queue, m.channel, m.kind, m.key, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.content_type, cast(m.headers as text) as headers, m.payload_size, m.payload, m.due,
        m.expires_at, m.state, m.fence, m.worker, m.claimed_at, m.until
    from {schema}.message_v1 m
) h
where {filters} and h.id > {from_id} and h.id <= {to_id}
