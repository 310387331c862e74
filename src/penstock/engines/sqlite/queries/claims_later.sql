-- $1: fences. When the first lease that is left of each may run out.
update "penstock_claim" set until = (
    select min(l.until) from "penstock_lease" l where l.fence = "penstock_claim".fence)
where fence in (select value from json_each($1))
