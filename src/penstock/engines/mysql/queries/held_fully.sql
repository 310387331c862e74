-- $1: (message id, fence) in order, $2: now. As held.sql, with all that the history and a return need.
select l.message_id, l.fence, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), (select s.history from `penstock_setting` s),
    l.claimed_at, l.worker, m.kind, m.priority, m.due, m.published_at, m.first_published_at, m.attempt,
    m.spent, m.max_attempts, octet_length(m.payload)
from $1:pairs x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
straight_join `penstock_message` m force index (primary) on m.id = l.message_id
for update
