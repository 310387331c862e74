-- $1: now, $2: how many.
select id from `penstock_done` force index (done_expiry) where keep_until <= $1 order by keep_until limit $2
