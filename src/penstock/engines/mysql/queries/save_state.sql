-- $1: state, $2: its type, $3: ids.
update `penstock_message` set state = $1, state_type = $2 where id in ($3...)
