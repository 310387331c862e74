-- name: policy
-- $1: channel, $2: now.
select concurrency, rate, burst, backlog, weight,
    paused and coalesce(paused_until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true), closing, paused_until, throttled
from `laneway_channel` where id = $1

-- name: locked_policy
-- $1: channel, locked by us: this reads what the last owner committed, not an older snapshot. $2: now.
select concurrency, rate, burst, backlog, weight,
    paused and coalesce(paused_until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true), closing, paused_until, throttled
from `laneway_channel` where id = $1
for update

-- name: set_policy
-- $1: rows, locked by us: this insert only sets their columns. tat is the latest that the arrival time of the
-- rate may be; null, without a rate, makes it null.
insert into `laneway_channel` (id, queue, name, concurrency, rate, burst, backlog, weight, gated, tat)
values $1...
on duplicate key update concurrency = values(concurrency), rate = values(rate), burst = values(burst),
    backlog = values(backlog), weight = values(weight), gated = values(gated), closing = false,
    tat = least(tat, values(tat))

-- name: pause
-- $1: channel ids, locked by us, $2: paused or resumed, $3: until when (null: for good).
update $1:keys x straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id)
set c.paused = $2, c.paused_until = $3, c.throttled = false

-- name: throttle
-- $1: channel, locked by us, $2: until when. A pause that lasts longer stays as it is.
update `laneway_channel` force index (primary) set paused = true, throttled = true, paused_until = $2
where id = $1 and (not paused or paused_until < $2)

-- name: remove
-- $1: channel ids, locked by us.
update $1:keys x straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id)
set c.closing = true, c.gated = 1

-- name: uncharged_leases
-- $1: channel ids. Their leases that were claimed without being charged to a limit.
select l.message_id, l.fence, l.channel_id, c.queue, c.name
from `laneway_lease` l join `laneway_channel` c on c.id = l.channel_id
where l.channel_id in ($1...) and not l.counted
    and not exists (select 1 from `laneway_stray` s where s.message_id = l.message_id and s.fence = l.fence)
order by l.message_id

-- name: lock_uncharged_leases
-- $1: (message id, fence). Skips those that somebody else is writing to.
select l.message_id, l.fence, l.channel_id from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
    and not l.counted
for update skip locked

-- name: mark_leases_charged
-- $1: message ids, locked by us.
update $1:ids x straight_join `laneway_lease` l force index (primary) on l.message_id = x.id
set l.counted = true

-- name: existing_uncharged_leases
-- $1: (message id, fence).
select l.message_id, l.fence from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence
    and not l.counted

-- name: add_stray_leases
-- $1: rows.
insert into `laneway_stray` (message_id, fence, channel_id, queue, channel) values $1...

-- name: charge_channel
-- $1: how many leases, $2: channel.
update `laneway_channel` force index (primary) set leased = leased + $1 where id = $2
