-- name: requeue
-- $1: ids, locked by us, $2: due, $3: 1 if the attempt is counted, $4: 1 if it also uses up one of
-- max_attempts; otherwise the count of failed attempts starts again at 0.
update $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
set m.due = $2, m.attempt = m.attempt + $3,
    m.spent = case when $3 = 0 then m.spent when $4 = 1 then m.spent + 1 else 0 end

-- name: add_dead_letters
-- $1: ids, locked by us, $2: now, $3: reason, $4: type of the error, $5: the error, $6: its traceback. The key stays taken,
-- so that a redriven message cannot meet a second one with its key.
insert into `laneway_dead` (id, died_at, published_at, first_published_at, expires_at, key_window,
    attempt, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, state_type, state,
    reason, error_type, error, traceback, payload)
select m.id, $2, m.published_at, m.first_published_at, m.expires_at, m.key_window,
    m.attempt + 1, m.max_attempts, m.priority, m.queue, m.channel, m.kind, m.`key`, m.content_type,
    m.headers, m.state_type, m.state, $3, $4, $5, $6, m.payload
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: delete_messages
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_message` t force index (primary) on t.id = x.id
