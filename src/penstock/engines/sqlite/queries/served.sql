-- $1: channel, $2..: what a claim leaves behind of it.
update "penstock_channel" set
    waiting = $2, leased = $3, bands = $4, next_due = $5, open_at = $6, tat = $7, credit = $8,
    skips = $9, turn = $10, wake_at = $11
where id = $1
