-- $1: channel id.
select id from `penstock_channel` force index (primary) where id = $1 for update
