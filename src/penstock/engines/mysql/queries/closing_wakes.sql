-- $1: channels, owned.
select id, channel_id from `penstock_wake` where channel_id in ($1...)
