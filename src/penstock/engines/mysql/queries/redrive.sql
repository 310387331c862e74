-- $1: ids, locked by us, $2: due, $3: now, $4: new budget of attempts. Their id, their attempt count and
-- the time of their first publish stay.
insert into `penstock_message` (id, channel_id, due, published_at, first_published_at, key_window, attempt,
    spent, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, state_type, state, payload)
select d.id, unhex(substr(sha2(concat(octet_length(d.queue), ':', d.queue, d.channel), 256), 1, 32)), $2, $3,
    d.first_published_at, d.key_window, d.attempt, 0, coalesce($4, d.max_attempts), d.priority, d.queue,
    d.channel, d.kind, d.`key`, d.content_type, d.headers, d.state_type, d.state, d.payload
from $1:ids x straight_join `penstock_dead` d force index (primary) on d.id = x.id
