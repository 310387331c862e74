-- name: expired_leases
-- $1: from which time on, $2: now, $3: limit. Leases that ran out.
select message_id, fence, until from `laneway_lease` force index (lease_until)
where until >= $1 and until <= $2 order by until limit $3

-- name: lock_expired_leases
-- $1: (message id, fence) in order, $2: now. As lock_leases_and_messages, but skips leases that their holders
-- are settling.
select l.message_id, l.fence, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), (select s.history from `laneway_setting` s),
    l.claimed_at, l.worker, m.kind, m.priority, m.due, m.published_at, m.first_published_at, m.attempt,
    m.spent, m.max_attempts, octet_length(m.payload)
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence and l.until <= $2
straight_join `laneway_message` m force index (primary) on m.id = l.message_id
for update skip locked

-- name: lapsed_messages
-- $1: now, $2: limit. Expired messages that are not leased (the second column is their id), and expiries of
-- messages that have ended otherwise (it is null).
select e.message_id, m.id, m.channel_id, m.queue, m.channel
from `laneway_expiry` e force index (expiry_order)
left join `laneway_message` m on m.id = e.message_id and m.expires_at = e.expires_at
where e.expires_at <= $1
    and not exists (select 1 from `laneway_lease` l where l.message_id = e.message_id)
order by e.expires_at limit $2

-- name: lock_free_keys
-- $1: key ids in order. Those that nobody else has locked.
select t.id from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update skip locked

-- name: still_lapsed
-- $1: message ids, $2: now. We have locked their channels.
select id from `laneway_message` where id in ($1...) and expires_at <= $2 order by id

-- name: delete_expiries
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_expiry` t force index (primary) on t.message_id = x.id
