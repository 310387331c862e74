-- name: policy
-- $1: queue, $2: channel, $3: now.
select concurrency, rate, burst, backlog, weight, paused and coalesce(paused_until > $3, 1), closing,
    case when paused_until > $3 then paused_until end, throttled and paused and paused_until > $3
from "laneway_channel" where queue = $1 and name = $2

-- name: set_policy
-- $1: channel, $2..$6: the policy, $7 and $8: tat and open_at under it. Also stops the removal of a
-- channel.
update "laneway_channel" set concurrency = $2, rate = $3, burst = $4, backlog = $5, weight = $6,
    tat = $7, open_at = $8, closing = 0
where id = $1

-- name: arrival_times
-- $1: channel ids. The theoretical arrival times of their rate limits.
select c.id, c.tat from json_each($1) j cross join "laneway_channel" c where c.id = j.value

-- name: pause
-- $1: channel, $2: paused, $3: until when (null: for good), $4: closing (null: unchanged).
update "laneway_channel" set paused = $2, paused_until = $3, throttled = 0, closing = coalesce($4, closing) where id = $1

-- name: throttle
-- $1: channel, $2: until when. A pause that lasts longer stays as it is.
update "laneway_channel" set paused = 1, throttled = 1, paused_until = $2
where id = $1 and (not paused or paused_until < $2)
