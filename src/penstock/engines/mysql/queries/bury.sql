-- $1: ids, locked by us, $2: now, $3: reason, $4: type of the error, $5: the error. The key stays taken,
-- so that a redrive cannot meet a second message of that key.
insert into `penstock_dead` (id, died_at, published_at, first_published_at, expires_at, key_window,
    attempt, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, state_type, state,
    reason, error_type, error, payload)
select m.id, $2, m.published_at, m.first_published_at, m.expires_at, m.key_window,
    m.attempt + 1, m.max_attempts, m.priority, m.queue, m.channel, m.kind, m.`key`, m.content_type,
    m.headers, m.state_type, m.state, $3, $4, $5, m.payload
from $1:ids x straight_join `penstock_message` m force index (primary) on m.id = x.id
