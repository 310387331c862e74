-- $1: message, $2: due, $3: whether the attempt counts, $4: tries spent, $5: keep the state, $6: state,
-- $7: its type.
update "penstock_message" set due = $2, attempt = attempt + $3, spent = $4,
    state = case when $5 then state else $6 end, state_type = case when $5 then state_type else $7 end
where id = $1
