-- $1: message ids in order, $2: (id, fence) of each, $3: now. As held.sql, with all that the history
-- and a return need.
select l.message_id, l.fence, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now,
    (select s.history from `penstock_setting` s) as history,
    l.claimed_at, l.worker, m.kind, m.priority, m.due, m.published_at, m.first_published_at, m.attempt,
    m.spent, m.max_attempts, octet_length(m.payload) as payload_size
from `penstock_lease` l force index (primary) straight_join `penstock_message` m on m.id = l.message_id
where l.message_id in ($1...) and (l.message_id, l.fence) in ($2...)
for update
