-- $1: message ids, all locked by us. The lease and the message go together.
delete l, m from $1:ids x
straight_join `penstock_lease` l force index (primary) on l.message_id = x.id
straight_join `penstock_message` m force index (primary) on m.id = x.id
