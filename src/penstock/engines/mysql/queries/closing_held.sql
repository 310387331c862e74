-- $1: channels.
select id from `penstock_channel` force index (primary) where id in ($1...) and closing
for update skip locked
