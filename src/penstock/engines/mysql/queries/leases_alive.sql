-- $1: message ids, $2: (id, fence) of each.
select message_id, fence from `penstock_lease`
where message_id in ($1...) and (message_id, fence) in ($2...) and not counted
