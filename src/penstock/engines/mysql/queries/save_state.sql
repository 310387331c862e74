-- $1: ids, locked by us, $2: state, $3: its type.
update $1:ids x straight_join `penstock_message` m force index (primary) on m.id = x.id
set m.state = $2, m.state_type = $3
