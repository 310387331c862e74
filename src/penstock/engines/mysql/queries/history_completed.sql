-- $1: message ids, all locked by us, $2: now.
insert into `penstock_history` (message_id, fence, attempt, first_published_at, published_at, due,
    claimed_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome)
select m.id, l.fence, m.attempt + 1, m.first_published_at, m.published_at, m.due,
    l.claimed_at, $2, octet_length(m.payload), true, false, m.priority, m.queue, m.channel, m.kind,
    l.worker, 'completed'
from $1:ids x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id
straight_join `penstock_message` m force index (primary) on m.id = x.id
