-- Channels whose time has come join the ring at its end, the earliest first.
-- $1: queue, $2: now, $3: the first turn to give, $4: how many at most.
update "penstock_channel" set turn = $3 + x.place - 1, wake_at = null
from (
    select y.id, row_number() over (order by y.wake_at, y.id) as place
    from (
        select id, wake_at from "penstock_channel"
        where queue = $1 and wake_at <= $2 order by wake_at limit $4) y
) x
where "penstock_channel".id = x.id
