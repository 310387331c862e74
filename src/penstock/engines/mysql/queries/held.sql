-- $1: (message id, fence) in order, $2: now. Those leases that are still ours, and locked from here
-- on; one with another fence is let go at once. As one text, which is cheaper for drivers in Python:
-- id, fence, whether it is counted or has a key, now, and how much history is kept.
select concat_ws(',', l.message_id, l.fence, l.counted or m.`key` is not null, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `penstock_setting` s))
from $1:pairs x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
straight_join `penstock_message` m force index (primary) on m.id = l.message_id
for update
