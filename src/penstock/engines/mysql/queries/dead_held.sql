-- $1: ids in order, $2: now. Dead letters, each redriven or discarded by one only.
select d.id, d.queue, d.channel, d.kind, d.`key`, d.key_window, d.priority, d.attempt, d.reason, d.error_type,
    d.published_at, d.first_published_at, octet_length(d.payload), coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `penstock_setting` s)
from $1:ids x straight_join `penstock_dead` d force index (primary) on d.id = x.id
for update skip locked
