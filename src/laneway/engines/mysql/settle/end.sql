-- name: lock_keys
-- $1: key ids in order. Who has them, and behind whom.
select t.id, t.message_id, t.behind, t.behind_due
from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update

-- name: lock_parked
-- $1: ids of messages that wait behind others; we have locked their keys. With the wake that is theirs alone: no
-- other is at that time.
select m.id, m.channel_id, m.queue, m.channel, m.priority, m.due,
    (select min(w.id) from `laneway_wake` w where w.queue = m.queue and w.at = m.due and w.message_id = m.id and w.n = 1)
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
for update

-- name: move_due
-- $1: message, $2: due.
update `laneway_message` set due = $2 where id = $1

-- name: delete_own_wakes
-- $1: ids of wakes.
delete t from $1:ids x straight_join `laneway_wake` t force index (primary) on t.id = x.id

-- name: nothing_in_front
-- $1: key ids, locked by us. The running messages in front have ended.
update $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
set t.behind = null, t.behind_due = null

-- name: give_key_to_running
-- $1: key id, locked by us. The message that waited behind a running one has ended. (Of one table: only then the
-- assignments have an order.)
update `laneway_dedupe` set message_id = behind, behind = null, behind_due = null where id = $1

-- name: add_history
-- $1: rows.
insert into `laneway_history` (message_id, fence, attempt, first_published_at, published_at, due,
    claimed_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome,
    reason, error_type, error, started_at)
values $1...

-- name: release_keys
-- $1: key ids in order, $2: message ids. The keys are free again.
delete t from $1:keys x
straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id) and t.message_id in ($2...)

-- name: keep_keys
-- $1: key ids in order, $2: message ids, $3: until when the keys live on, for their window.
update $1:keys x
straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id) and t.message_id in ($2...)
set t.expires_at = $3

-- name: messages_of_lost_leases
-- $1: message ids, $2: now. The messages whose leases were lost, if they exist. The first row only has the time
-- and the history setting.
select null, 0, '', '', '', coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s)
union all
select id, attempt, queue, channel, kind, null, null from `laneway_message` where id in ($1...)

-- name: add_dead_counts
-- $1: rows.
insert into `laneway_dead_count` (queue, channel, n) values $1...

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
    reason, error_type, error, traceback, payload, flow_id, tell_at)
select m.id, $2, m.published_at, m.first_published_at, m.expires_at, m.key_window,
    m.attempt + 1, m.max_attempts, m.priority, m.queue, m.channel, m.kind, m.`key`, m.content_type,
    m.headers, m.state_type, m.state, $3, $4, $5, $6, m.payload, m.flow_id, $2
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: delete_messages
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_message` t force index (primary) on t.id = x.id
