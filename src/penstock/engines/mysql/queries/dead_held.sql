-- $1: ids in order, $2: now. Dead letters, each redriven or discarded by one only.
select id, queue, channel, kind, `key`, key_window, priority, attempt, reason, error_type, published_at,
    first_published_at, octet_length(payload),
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `penstock_setting` s)
from `penstock_dead` force index (primary) where id in ($1...) for update skip locked
