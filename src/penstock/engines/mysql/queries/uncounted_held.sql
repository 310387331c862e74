-- $1: (message id, fence). Those that nobody is writing to.
select l.message_id, l.fence, l.channel_id from $1:pairs x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
    and not l.counted
for update skip locked
