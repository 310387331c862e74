-- name: lock_dead_letters
-- $1: ids in order, $2: now. Skips those that another session is redriving or discarding.
select d.id, d.queue, d.channel, d.kind, d.`key`, d.key_window, d.priority, d.attempt, d.reason, d.error_type,
    d.published_at, d.first_published_at, octet_length(d.payload), coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s)
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
for update skip locked

-- name: redrive
-- $1: ids, locked by us, $2: due, $3: now, $4: new max_attempts, or null. The id, the attempt count and the
-- time of the first publish stay.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, key_window, attempt,
    spent, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, state_type, state, payload)
select d.id, unhex(substr(sha2(concat(octet_length(d.queue), ':', d.queue, d.channel), 256), 1, 32)), $2, $3,
    d.first_published_at, d.key_window, d.attempt, 0, coalesce($4, d.max_attempts), d.priority, d.queue,
    d.channel, d.kind, d.`key`, d.content_type, d.headers, d.state_type, d.state, d.payload
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id

-- name: delete_dead_letters
-- $1: ids.
delete t from $1:ids x straight_join `laneway_dead` t force index (primary) on t.id = x.id

-- name: keep_discarded
-- $1: ids of dead letters, locked by us, $2: now. As keep_ended.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome, reason,
    error_type, error)
select d.id, $2, $2 + cast(1000000 * greatest(least(json_extract(convert(d.headers using utf8mb4), '$."laneway-keep-result"') + 0e0, 315360000), 0) as signed), d.queue, d.channel, d.kind,
    'discarded', d.reason, d.error_type, d.error
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
where d.headers is not null and json_type(json_extract(convert(d.headers using utf8mb4), '$."laneway-keep-result"')) in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')
