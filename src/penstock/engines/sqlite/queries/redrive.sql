-- $1: ids of dead letters, $2: due, $3: new budget of attempts (null: as before), $4: now. Their id,
-- attempt count and first publish stay.
insert into "penstock_message" (
    id, channel_id, priority, due, published_at, first_published_at, attempt, max_attempts, kind, key,
    key_window, content_type, headers, state_type, state, payload)
select d.id, c.id, d.priority, $2, $4, d.first_published_at, d.attempt, coalesce($3, d.max_attempts),
    d.kind, d.key, d.key_window, d.content_type, d.headers, d.state_type, d.state, d.payload
from json_each($1) j cross join "penstock_dead" d cross join "penstock_channel" c
where d.id = j.value and c.queue = d.queue and c.name = d.channel
returning id, channel_id, priority
