-- name: names_of_messages
-- $1: message ids, locked by us.
select m.id, m.queue, m.channel, m.kind
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
lock in share mode

-- name: keep_results
-- $1: rows.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome, content_type,
    payload)
values $1...

-- name: keep_ended
-- $1: message ids, locked by us, $2: outcome, $3: now. How messages ended that no handler ended, if their results
-- were to be kept. Anybody can write any headers: what is no number is nothing, and ten years are the longest.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select m.id, $3, $3 + cast(1000000 * greatest(least(json_extract(convert(m.headers using utf8mb4), '$."laneway-keep-result"') + 0e0, 315360000), 0) as signed), m.queue, m.channel, m.kind, $2
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
where m.headers is not null and json_type(json_extract(convert(m.headers using utf8mb4), '$."laneway-keep-result"')) in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')

-- name: results
-- $1: ids, $2: now. Of messages that completed, those that are still kept.
select r.message_id, r.content_type, r.payload
from $1:ids x straight_join `laneway_result` r on r.message_id = x.id
where r.payload is not null
    and r.expires_at > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))

-- name: expired_results
-- $1: now, $2: limit.
select message_id from `laneway_result` force index (result_expiry)
where expires_at <= $1 order by expires_at limit $2

-- name: delete_results
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_result` t force index (primary) on t.message_id = x.id
