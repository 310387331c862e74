-- $1: due, $2: 1 if the attempt is counted, $3: 1 if it uses up one of max_attempts, else the budget
-- starts anew, $4: ids.
update `penstock_message` set due = $1, attempt = attempt + $2,
    spent = case when $2 = 0 then spent when $3 = 1 then spent + 1 else 0 end
where id in ($4...)
