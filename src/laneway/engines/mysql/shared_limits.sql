-- name: lock_limit
-- $1: name.
select concurrency, rate, burst, tat, rest_until, round, adapt_min is not null or breaker_window is not null
from `laneway_shared_limit` force index (primary) where name = $1 for update

-- name: lock_free_limit
-- $1: name. If nobody else holds it.
select 1 from `laneway_shared_limit` force index (primary) where name = $1 for update skip locked

-- name: look_limit
-- $1: name.
select concurrency, rate, burst, tat, rest_until, round, adapt_min is not null or breaker_window is not null
from `laneway_shared_limit` force index (primary) where name = $1

-- name: limit_control
-- $1: name. The columns of LimitControl.
select concurrency, set_concurrency, rest_until, adapt_min, adapt_max, adapted, successes, breaker_failures,
    breaker_window, breaker_minimum, breaker_pause, opened_at, open_until, recent, round, adapt_round, breaker_round
from `laneway_shared_limit` force index (primary) where name = $1

-- name: set_limit_control
-- $1: name, which we have locked, $2..$18: the columns of LimitControl.
update `laneway_shared_limit` set concurrency = $2, set_concurrency = $3, rest_until = $4, adapt_min = $5,
    adapt_max = $6, adapted = $7, successes = $8, breaker_failures = $9, breaker_window = $10, breaker_minimum = $11,
    breaker_pause = $12, opened_at = $13, open_until = $14, recent = $15, round = $16, adapt_round = $17,
    breaker_round = $18
where name = $1

-- name: controlled_limits
-- Those that adapt or have a breaker: people have set each of them. The others are not read.
select name from `laneway_shared_limit` force index (shared_limit_adapt) where adapt_min is not null
union
select name from `laneway_shared_limit` force index (shared_limit_breaker) where breaker_window is not null

-- name: controlled_among
-- $1: names.
select name from `laneway_shared_limit` force index (primary)
where name in ($1...) and (adapt_min is not null or breaker_window is not null)

-- name: note_limits
-- $1: (message id, fence), $2: name, $3: outcome, $4: now. What was taken back stays expired.
update $1:pairs x straight_join `laneway_limit_lease` k force index (primary)
    on k.name = $2 and k.message_id = x.id and k.fence = x.fence and coalesce(k.outcome, 0) <> 5
set k.outcome = $3, k.ended_at = coalesce($4, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))

-- name: lock_expired_runs
-- $1: message ids, $2: name. What their holders are about to note is left out.
select k.message_id from $1:ids x straight_join `laneway_limit_lease` k force index (primary)
    on k.name = $2 and k.message_id = x.id
for update skip locked

-- name: note_expired_runs
-- $1: message ids, whose rows we have locked, $2: name, $3: now.
update $1:ids x straight_join `laneway_limit_lease` k force index (primary) on k.name = $2 and k.message_id = x.id
set k.outcome = 5, k.ended_at = $3

-- name: add_limit
-- $1: name. (Ignoring one that is there would share a lock that nobody could take alone then.)
insert into `laneway_shared_limit` (name) values ($1) on duplicate key update name = `laneway_shared_limit`.name

-- name: limit_runs
-- $1: name. Who runs behind it, whether the lease is gone, and how it ended.
select k.message_id, l.message_id is null, k.round, k.outcome, k.ended_at
from `laneway_limit_lease` k force index (primary)
left join `laneway_lease` l force index (primary) on l.message_id = k.message_id and l.fence = k.fence
where k.name = $1

-- name: delete_limit_runs
-- $1: name, which we have locked, $2: message ids.
delete t from $2:ids x straight_join `laneway_limit_lease` t force index (primary) on t.name = $1 and t.message_id = x.id

-- name: limit_coming
-- $1: from when on. Messages that were made due and are about to start.
select message_id, limits from `laneway_limit_wait` force index (limit_wait_released) where released > $1

-- name: add_limit_runs
-- $1: rows of name, message id, fence, round.
insert into `laneway_limit_lease` (name, message_id, fence, round) values $1...
on duplicate key update fence = values(fence), round = values(round), outcome = null

-- name: set_limit_arrival
-- $1: name, which we have locked, $2: theoretical arrival time.
update `laneway_shared_limit` set tat = $2 where name = $1

-- name: limit_waits
-- $1: message ids.
select w.message_id, w.released is not null, w.charge, w.due
from $1:ids x straight_join `laneway_limit_wait` w force index (primary) on w.message_id = x.id

-- name: delete_limit_waits
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_limit_wait` t force index (primary) on t.message_id = x.id

-- name: lowest_pass
-- $1: limits. Of those that wait for them, and the due time and id of that lane's first message. No row if nothing waits.
select l.pass, (
    select w.due from `laneway_limit_wait` w force index (limit_wait_order)
    where w.limits = $1 and w.channel_id = l.channel_id and w.released is null
    order by w.place, w.due, w.message_id limit 1), (
    select w.message_id from `laneway_limit_wait` w force index (limit_wait_order)
    where w.limits = $1 and w.channel_id = l.channel_id and w.released is null
    order by w.place, w.due, w.message_id limit 1)
from `laneway_limit_lane` l force index (limit_lane_order) where l.limits = $1 and l.waiting = 1
order by l.pass limit 1

-- name: highest_pass
-- $1: limits. Of those that waited for them last.
select pass from `laneway_limit_lane` force index (limit_lane_order) where limits = $1 and waiting = 0
order by pass desc limit 1

-- name: limited_messages
-- $1: message ids.
select m.id, m.channel_id, m.queue, m.kind, -m.priority, m.due, m.published_at
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id

-- name: add_limit_lane
-- $1: limits, $2: channel, which we have locked, $3: queue, $4: where the others are, $5: what it gets back, $6: now.
insert into `laneway_limit_lane` (limits, channel_id, queue, pass, waiting, used) values ($1, $2, $3, $4 - $5, 1, $6)
on duplicate key update used = $6,
    pass = if(`laneway_limit_lane`.waiting, `laneway_limit_lane`.pass - $5, greatest(`laneway_limit_lane`.pass - $5, $4)),
    waiting = 1

-- name: limit_lane
-- $1: limits, $2: message. The columns of LimitLane.
select m.channel_id, m.queue, coalesce(c.weight, 1), l.pass, greatest(m.due, m.published_at)
from `laneway_message` m force index (primary)
left join `laneway_channel` c force index (primary) on c.id = m.channel_id
left join `laneway_limit_lane` l force index (primary) on l.limits = $1 and l.channel_id = m.channel_id
where m.id = $2

-- name: charge_limit_lane
-- $1: limits, $2: channel, which we have locked, $3: queue, $4: where it begins, $5: what it is charged, $6: now.
insert into `laneway_limit_lane` (limits, channel_id, queue, pass, waiting, used) values ($1, $2, $3, $4 + $5, 0, $6)
on duplicate key update pass = greatest(`laneway_limit_lane`.pass, $4) + $5, used = $6

-- name: limit_clock
-- $1: limits, which we have locked.
select points from `laneway_limit_clock` force index (primary) where limits = $1

-- name: set_limit_clock
-- $1: limits, which we have locked, $2: points, $3: now.
insert into `laneway_limit_clock` (limits, points, `at`) values ($1, $2, $3) on duplicate key update points = $2, `at` = $3

-- name: limit_queue
-- $1: queue, $2: limits.
select 1 from `laneway_limit_queue` force index (primary) where queue = $1 and limits = $2

-- name: add_limit_queue
-- $1: queue, $2: limits.
insert into `laneway_limit_queue` (queue, limits) values ($1, $2) on duplicate key update queue = $1

-- name: add_limit_waits
-- $1: rows of message id, limits, channel, kind, place, due. One that waited before keeps its place.
insert into `laneway_limit_wait` (message_id, limits, channel_id, kind, place, due) values $1...
on duplicate key update limits = values(limits), released = null, charge = 0

-- name: limit_sets
-- $1: queues. Sets of limits that something of these queues may wait for.
select distinct limits from `laneway_limit_queue` force index (primary) where queue in ($1...)

-- name: limit_lanes
-- $1: limits, $2: queues, $3: limit, $4: now. Whose channels may start something.
select l.channel_id, l.pass, c.weight, c.concurrency
from `laneway_limit_lane` l force index (limit_lane_order)
straight_join `laneway_channel` c force index (primary) on c.id = l.channel_id
where l.limits = $1 and l.waiting = 1 and l.queue in ($2...)
    and not (c.paused and coalesce(c.paused_until > $4, true))
    and (c.concurrency is null and c.rate is null or not exists (
        select 1 from `laneway_limit_wait` w force index (limit_wait_released)
        where w.released > $4 - 1000000 and w.channel_id = l.channel_id))
order by l.pass limit $3

-- name: limit_lanes_of_kinds
-- $1: limits, $2: queues, $3: limit, $4: now, $5: kinds. The same, that have messages of these kinds.
select l.channel_id, l.pass, c.weight, c.concurrency
from `laneway_limit_lane` l force index (limit_lane_order)
straight_join `laneway_channel` c force index (primary) on c.id = l.channel_id
where l.limits = $1 and l.waiting = 1 and l.queue in ($2...)
    and not (c.paused and coalesce(c.paused_until > $4, true))
    and (c.concurrency is null and c.rate is null or not exists (
        select 1 from `laneway_limit_wait` w force index (limit_wait_released)
        where w.released > $4 - 1000000 and w.channel_id = l.channel_id))
    and exists (
        select 1 from `laneway_limit_wait` w force index (limit_wait_order)
        where w.limits = $1 and w.channel_id = l.channel_id and w.released is null and w.kind in ($5...))
order by l.pass limit $3

-- name: next_limited
-- $1: limits, $2: channel, $3: limit.
select message_id from `laneway_limit_wait` force index (limit_wait_order)
where limits = $1 and channel_id = $2 and released is null order by place, due, message_id limit $3

-- name: next_limited_of_kinds
-- $1: limits, $2: channel, $3: limit, $4: kinds.
select message_id from `laneway_limit_wait` force index (limit_wait_order)
where limits = $1 and channel_id = $2 and released is null and kind in ($4...) order by place, due, message_id limit $3

-- name: release_limit_waits
-- $1: message ids, $2: now, $3: what each costs its lane.
update $1:ids x straight_join `laneway_limit_wait` w force index (primary) on w.message_id = x.id
set w.released = $2, w.charge = $3

-- name: move_limit_lane
-- $1: limits, $2: channel, which we have locked, $3: what was taken, by weight, $4: now.
update `laneway_limit_lane` l force index (primary) set l.pass = l.pass + $3, l.used = $4, l.waiting = exists (
    select 1 from `laneway_limit_wait` w force index (limit_wait_order)
    where w.limits = $1 and w.channel_id = $2 and w.released is null)
where l.limits = $1 and l.channel_id = $2

-- name: set_shared_limit
-- $1: name, which we have locked, $2: rate, $3: burst, $4: theoretical arrival time.
update `laneway_shared_limit` set rate = $2, burst = $3, tat = $4 where name = $1

-- name: rest_shared_limit
-- $1: name, which we have locked, $2: until.
update `laneway_shared_limit` set rest_until = greatest(coalesce(rest_until, 0), $2) where name = $1

-- name: remove_shared_limit
-- $1: name, which we have locked.
delete from `laneway_shared_limit` where name = $1

-- name: shared_limits
select l.name, l.rate, l.burst,
    (select count(*) from `laneway_limit_lease` k force index (primary)
    straight_join `laneway_lease` e force index (primary) on e.message_id = k.message_id and e.fence = k.fence
    where k.name = l.name),
    concurrency, set_concurrency, rest_until, adapt_min, adapt_max, adapted, successes, breaker_failures,
    breaker_window, breaker_minimum, breaker_pause, opened_at, open_until, recent, round, adapt_round, breaker_round
from `laneway_shared_limit` l force index (primary) order by l.name

-- name: all_limit_sets
select distinct limits from `laneway_limit_queue`

-- name: limit_depth
-- $1: limits. How many messages wait for them, counted to 10,000.
select count(*) from (
    select 1 from `laneway_limit_wait` w force index (limit_wait_order)
    straight_join `laneway_message` m force index (primary) on m.id = w.message_id
    where w.limits = $1 and w.released is null limit 10000) x

-- name: channels_behind_limits
-- $1: ids of channels.
select l.channel_id, min(l.limits) from `laneway_limit_lane` l force index (limit_lane_channel)
where l.channel_id in ($1...) and l.waiting = 1 group by l.channel_id

-- name: idle_limit_lanes
-- $1: until when, $2: limit. Lanes in which nothing waits and that were not used since; and whether they have had no more
-- than those that wait: the others stay.
select l.limits, l.channel_id, l.pass <= coalesce((
    select k.pass from `laneway_limit_lane` k force index (limit_lane_order)
    where k.limits = l.limits and k.waiting = 1 order by k.pass limit 1), 1e300)
from (
    select limits, channel_id, pass from `laneway_limit_lane` force index (limit_lane_idle)
    where waiting = 0 and used < $1 order by used limit $2) l

-- name: old_limit_clocks
-- $1: until when, $2: limit. Clocks of sets behind which nothing has started since.
select limits from `laneway_limit_clock` force index (limit_clock_at) where `at` < $1 order by `at` limit $2

-- name: lock_free_clocks
-- $1: sets of limits in order, $2: until when. As far as nobody holds them, and whether they have a lane: then they are needed.
select c.limits, (
    select l.channel_id from `laneway_limit_lane` l force index (primary) where l.limits = c.limits limit 1) is not null
from $1:names x straight_join `laneway_limit_clock` c force index (primary) on c.limits = unhex(x.id)
where c.`at` < $2
for update skip locked

-- name: delete_limit_clocks
-- $1: sets of limits, whose clocks we have locked.
delete c from $1:names x straight_join `laneway_limit_clock` c force index (primary) on c.limits = unhex(x.id)

-- name: keep_limit_clocks
-- $1: sets of limits, whose clocks we have locked, $2: until when the others were written.
update $1:names x straight_join `laneway_limit_clock` c force index (primary) on c.limits = unhex(x.id) set c.`at` = $2

-- name: delete_limit_lanes
-- $1: (limits, channel) in order. Waits for who holds them.
delete l from $1:lanes x
straight_join `laneway_limit_lane` l force index (primary)
    on l.limits = unhex(x.limits) and l.channel_id = unhex(x.channel) and l.waiting = 0

-- name: keep_limit_lanes
-- $1: (limits, channel) in order, $2: now. Waits for who holds them.
update $1:lanes x
straight_join `laneway_limit_lane` l force index (primary)
    on l.limits = unhex(x.limits) and l.channel_id = unhex(x.channel) and l.waiting = 0
set l.used = $2

-- name: released_waits
-- $1: until when, $2: limit. What is known of messages that were made due a while ago.
select message_id from `laneway_limit_wait` force index (limit_wait_released) where released < $1 limit $2

-- name: limit_queues
-- $1: queue and $2: limits after which, $3: limit. And whether something waits there.
select q.queue, q.limits, (
    select 1 from `laneway_limit_lane` l force index (limit_lane_queue)
    where l.limits = q.limits and l.queue = q.queue and l.waiting = 1 limit 1) is not null
from `laneway_limit_queue` q force index (primary)
where q.queue > $1 or (q.queue = $1 and q.limits > $2)
order by q.queue, q.limits limit $3

-- name: idle_limit_queue
-- $1: queue, $2: limits, which we have locked. A row if nothing waits there.
select 1 from `laneway_limit_queue` q force index (primary) where q.queue = $1 and q.limits = $2 and (
    select 1 from `laneway_limit_lane` l force index (limit_lane_queue)
    where l.limits = q.limits and l.queue = q.queue and l.waiting = 1 limit 1) is null

-- name: delete_limit_queue
-- $1: queue, $2: limits, which we have locked.
delete from `laneway_limit_queue` where queue = $1 and limits = $2
