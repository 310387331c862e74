-- $1: now, $2: how many. Claims of which a lease may have run out.
select fence from "penstock_claim" where until <= $1 order by until limit $2
