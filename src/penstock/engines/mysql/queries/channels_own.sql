-- $1: channel ids, $2: now. What another claim holds is left out.
select c.id, c.queue, c.name, c.weight, c.concurrency, c.rate, c.burst, c.paused, c.turn, c.n, c.leased, c.tat,
    c.credit, c.skips, c.places, coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from $1:keys x straight_join `penstock_channel` c force index (primary) on c.id = unhex(x.id)
for update skip locked
