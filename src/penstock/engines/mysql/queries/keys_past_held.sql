-- $1: key ids in order, $2: now.
select id from `penstock_dedupe` force index (primary) where id in ($1...) and expires_at <= $2
for update skip locked
