-- $1: key ids, all locked by us already.
select id, message_id, expires_at from `penstock_dedupe` where id in ($1...) for update
