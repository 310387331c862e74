select {columns}
from (
    select d.id, d.queue, d.channel, d.kind, d.key, d.priority, d.published_at, d.first_published_at, d.attempt,
        d.max_attempts, d.content_type, cast(d.headers as text) as headers, d.payload_size, d.payload, d.died_at,
        d.reason, d.error_type, d.error
    from {schema}.dead_letter_v1 d
) h
where {filters} and h.id > {from_id} and h.id <= {to_id}
