-- $1: ids. Messages, and the names of their channels.
select id, channel_id, queue, channel from `penstock_message` where id in ($1...)
