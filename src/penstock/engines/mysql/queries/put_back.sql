-- $1: ids, locked by us, $2: due, $3: 1 if the attempt is counted, $4: 1 if it uses up one of
-- max_attempts, else the budget starts anew.
update $1:ids x straight_join `penstock_message` m force index (primary) on m.id = x.id
set m.due = $2, m.attempt = m.attempt + $3,
    m.spent = case when $3 = 0 then m.spent when $4 = 1 then m.spent + 1 else 0 end
