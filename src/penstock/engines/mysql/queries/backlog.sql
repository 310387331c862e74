-- $1: channel id, $2: backlog. Counts no further than that.
select $1, count(*) from (
    select 1 from `penstock_message` force index (message_order) where channel_id = $1 limit $2) m
