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
