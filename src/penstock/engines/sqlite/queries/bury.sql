-- $1: rows of message id, reason, error type, error; $2: now. The key stays taken, so that a redrive
-- cannot meet a second message of that key.
insert into "penstock_dead" (
    id, died_at, published_at, first_published_at, attempt, max_attempts, priority, queue, channel,
    kind, key, key_window, content_type, headers, state_type, state, reason, error_type, error, payload)
select m.id, $2, m.published_at, m.first_published_at, m.attempt + 1, m.max_attempts, m.priority,
    c.queue, c.name, m.kind, m.key, m.key_window, m.content_type, m.headers, m.state_type, m.state,
    json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]'),
    m.payload
from json_each($1) j cross join "penstock_message" m cross join "penstock_channel" c
where m.id = json_extract(j.value, '$[0]') and c.id = m.channel_id
