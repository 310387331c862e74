-- $1: the time before which a lease must have run out. Upkeep takes them back within seconds.
select count(*), min(until) from (
    select l.until from "penstock_claim" k cross join "penstock_lease" l
    where k.until < $1 and l.fence = k.fence and l.until < $1 limit 1000)
