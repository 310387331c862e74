select {columns}
from (
    select m.id, m.queue, m.channel, m.kind, m.key, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.content_type, cast(m.headers as text) as headers, m.payload_size, m.payload, m.due,
        m.expires_at, m.fence, m.claimed_at, m.state_type, m.state
    from {schema}.stream_message_v1 m
    where m.stream = {stream} and m.seq = {seq} and m.place > {from_place} and m.place <= {to_place}
) h
