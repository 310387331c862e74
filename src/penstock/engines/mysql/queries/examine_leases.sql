-- $1: since when a lease must have run out, $2: now. Upkeep takes them back within seconds.
select count(*), min(until) from (
    select until from `penstock_lease` force index (lease_until)
    where until < coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) - $1
    order by until limit 1000) l
