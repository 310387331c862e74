-- $1: (message id, fence).
delete t from $1:pairs x
straight_join `penstock_stray` t force index (primary) on t.message_id = x.id and t.fence = x.fence
