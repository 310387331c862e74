-- $1: now, $2: how many.
select id from `penstock_dedupe` force index (dedupe_expiry)
where expires_at <= $1 order by expires_at limit $2
