-- The one place where a channel's counts and schedule change outside of a claim.
-- $1: channel, $2: messages more, $3: leases more, $4: bands, $5: due of the earliest of them (or null),
-- $6: the turn that it may get, $7: now.
-- It may start something at the later of next_due and open_at, unless it is paused, full or empty: at
-- that time it has a turn, or wakes. (The same expressions come back: a subquery for them costs three
-- times as much.)
update "penstock_channel" set
    waiting = waiting + $2,
    leased = leased + $3,
    bands = bands | $4,
    next_due = case when waiting + $2 > 0 then min(coalesce(next_due, $5), coalesce($5, next_due)) end,
    turn = case when not (paused or waiting + $2 <= 0 or coalesce(leased + $3 >= concurrency, 0))
        and min(coalesce(next_due, $5), coalesce($5, next_due)) <= $7 and coalesce(open_at, $7) <= $7
        then coalesce(turn, $6) end,
    credit = case when turn is not null and not (paused or waiting + $2 <= 0
        or coalesce(leased + $3 >= concurrency, 0)) then credit else 0 end,
    wake_at = case when not (paused or waiting + $2 <= 0 or coalesce(leased + $3 >= concurrency, 0))
        and max(coalesce(open_at, $7), min(coalesce(next_due, $5), coalesce($5, next_due))) > $7
        then max(coalesce(open_at, $7), min(coalesce(next_due, $5), coalesce($5, next_due))) end
where id = $1
