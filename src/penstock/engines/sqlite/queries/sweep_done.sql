-- $1: now. A few keys whose time is over.
delete from "penstock_done" where (queue, key) in (
    select queue, key from "penstock_done" where keep_until <= $1 order by keep_until limit 5)
