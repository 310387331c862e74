-- $1: now, $2: how many.
delete from "penstock_dedupe" where (queue, key) in (
    select queue, key from "penstock_dedupe" where expires_at <= $1 limit $2)
returning 1
