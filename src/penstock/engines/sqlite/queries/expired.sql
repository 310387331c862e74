-- $1: fences, $2: now, $3: how many. Leases of these claims that ran out.
select l.message_id, l.fence from json_each($1) j cross join "penstock_lease" l
where l.fence = j.value and l.until <= $2 limit $3
