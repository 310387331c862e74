-- $1: channel id, $2: backlog. Counts no further than that. (The id would be a column's name, which drivers
-- read as text, if it had no other.)
select $1 as id, count(*) as n from (
    select 1 from `penstock_message` force index (message_order) where channel_id = $1 limit $2) m
