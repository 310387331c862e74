-- $1: message ids in order, $2: (id, fence) of each, $3: now.
select l.message_id, l.fence, l.until,
    coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now
from `penstock_lease` l force index (primary)
where l.message_id in ($1...) and (l.message_id, l.fence) in ($2...)
for update
