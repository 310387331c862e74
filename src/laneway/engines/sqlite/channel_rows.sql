-- name: find_channels
-- $1: queue, $2: names. Those that exist, with what publish needs to know of them.
select name, id, closing,
    case when backlog is not null then max(backlog - waiting - leased, 0) end as room
from "laneway_channel" where queue = $1 and name in (select value from json_each($2))

-- name: add_channel
-- $1: queue, $2: name, $3: now.
insert into "laneway_channel" (queue, name, created_at) values ($1, $2, $3)

-- name: update_channel_counts
-- All changes to a channel's counts and schedule, other than those of a claim.
-- $1: channel, $2: waiting messages added, $3: leases added, $4: bits of the added priorities,
-- $5: earliest due of the added messages (or null), $6: the turn to give it if it is ready, $7: now.
-- A channel can start a message at the later of next_due, open_at and the end of its pause, unless it is
-- paused for good, full or empty: if that time has come it has a turn, otherwise a wake_at. (Expressions are repeated because a
-- subquery for them costs three times as much.)
update "laneway_channel" set
    waiting = waiting + $2,
    leased = leased + $3,
    bands = bands | $4,
    next_due = case when waiting + $2 > 0 then min(coalesce(next_due, $5), coalesce($5, next_due)) end,
    turn = case when not (paused and coalesce(paused_until > $7, 1) or waiting + $2 <= 0 or coalesce(leased + $3 >= concurrency, 0))
        and min(coalesce(next_due, $5), coalesce($5, next_due)) <= $7 and coalesce(open_at, $7) <= $7
        then coalesce(turn, $6) end,
    credit = case when turn is not null and not (paused and coalesce(paused_until > $7, 1) or waiting + $2 <= 0
        or coalesce(leased + $3 >= concurrency, 0)) then credit else 0 end,
    wake_at = case when not (paused and paused_until is null or waiting + $2 <= 0
            or coalesce(leased + $3 >= concurrency, 0))
        and max(coalesce(open_at, $7), coalesce(paused_until, $7),
            min(coalesce(next_due, $5), coalesce($5, next_due))) > $7
        then max(coalesce(open_at, $7), coalesce(paused_until, $7),
            min(coalesce(next_due, $5), coalesce($5, next_due))) end
where id = $1
