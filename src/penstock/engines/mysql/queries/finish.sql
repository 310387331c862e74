-- $1: message ids, all locked by us. The lease and the message go together.
delete l, m from `penstock_lease` l straight_join `penstock_message` m on m.id = l.message_id
where l.message_id in ($1...)
