-- $1..$9: the columns of Move. Only what is still the same revision at the same tick moves.
update "penstock_schedule" set
    next_at = $5, look_at = $6, last_at = $7, fired = fired + $8, error = $9
where queue = $1 and name = $2 and revision = $3 and next_at = $4
