-- $1: which visit, $2: channel, $3: priority, $4 and $5: after which due time and id, $6: now,
-- $7: how many. Two ranges of one index: what is due at the same time as the last one taken, and
-- what is due later. The numbers travel as one text: drivers in Python take a microsecond a column.
(select concat_ws(',', $1, m.id, m.due, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.spent, m.expires_at),
    m.kind, m.`key`, m.content_type, m.headers, m.state_type, m.state, m.payload
from `penstock_message` m force index (message_order)
    left join `penstock_lease` l force index (primary) on l.message_id = m.id
where ((m.channel_id = $2 and m.priority = $3 and m.due = $4 and m.id > $5)
        or (m.channel_id = $2 and m.priority = $3 and m.due > $4 and m.due <= $6))
    and m.due <= $6 and (m.expires_at is null or m.expires_at > $6) and l.message_id is null
order by m.due, m.id limit $7)
