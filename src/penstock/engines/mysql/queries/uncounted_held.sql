-- $1: message ids, $2: (id, fence) of each. Those that nobody is writing to.
select message_id, fence, channel_id from `penstock_lease` force index (primary)
where message_id in ($1...) and (message_id, fence) in ($2...) and not counted
for update skip locked
