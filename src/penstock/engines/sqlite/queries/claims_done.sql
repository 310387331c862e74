-- $1: fences. Claims without a lease are forgotten.
delete from "penstock_claim"
where fence in (select value from json_each($1))
    and not exists (select 1 from "penstock_lease" l where l.fence = "penstock_claim".fence)
