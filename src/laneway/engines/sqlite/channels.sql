-- name: add_kind_waiting
-- $1: message ids. Those of queues that are claimed by kind are also found by their kinds.
insert into "laneway_kind_waiting" (channel_id, kind, priority, due, message_id, expires_at)
select m.channel_id, m.kind, m.priority, m.due, m.id, m.expires_at
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_kind_queue" q
where m.id = j.value and c.id = m.channel_id and q.queue = c.queue

-- name: add_to_lanes
-- $1: message ids that wait again, or for the first time.
insert into "laneway_lane" (channel_id, kind, queue, waiting, bands, next_due)
select m.channel_id, m.kind, c.queue, count(*), sum(distinct 1 << min(m.priority, 61)), min(m.due)
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_kind_queue" q
where m.id = j.value and c.id = m.channel_id and q.queue = c.queue and q.ready
group by m.channel_id, m.kind
on conflict (channel_id, kind) do update set waiting = waiting + excluded.waiting,
    bands = bands | excluded.bands, next_due = min(coalesce(next_due, excluded.next_due), excluded.next_due)

-- name: take_from_lanes
-- $1: ids of messages that still exist and wait no more.
update "laneway_lane" set waiting = waiting - x.n
from (
    select k.channel_id, k.kind, count(*) as n
    from json_each($1) j cross join "laneway_message" m cross join "laneway_kind_waiting" k
    where m.id = j.value and k.channel_id = m.channel_id and k.kind = m.kind and k.priority = m.priority
        and k.due = m.due and k.message_id = m.id
    group by k.channel_id, k.kind
) x
where "laneway_lane".channel_id = x.channel_id and "laneway_lane".kind = x.kind

-- name: delete_kind_waiting
-- $1: ids of messages that still exist and wait no more.
delete from "laneway_kind_waiting" where (channel_id, kind, priority, due, message_id) in (
    select m.channel_id, m.kind, m.priority, m.due, m.id
    from json_each($1) j cross join "laneway_message" m where m.id = j.value)

-- name: schedule_lanes
-- $1: channel, $2: the turn to give to lanes that are ready, $3: now. As update_channel_counts does it for the
-- channel; writes only what changes. Lanes in which nothing waits are deleted before.
update "laneway_lane" set
    turn = case when x.at <= $3 then coalesce(turn, $2) end,
    wake_at = case when x.at > $3 then x.at end,
    credit = case when x.at <= $3 and turn is not null then credit else 0 end
from (
    select l.kind, case
        when c.paused and c.paused_until is null or coalesce(c.leased >= c.concurrency, 0) then null
        else max(coalesce(c.open_at, $3), coalesce(c.paused_until, $3), l.next_due) end as at
    from "laneway_channel" c cross join "laneway_lane" l where c.id = $1 and l.channel_id = c.id
) x
where "laneway_lane".channel_id = $1 and "laneway_lane".kind = x.kind and (
    (turn is null) = coalesce(x.at <= $3, 0) or wake_at is not case when x.at > $3 then x.at end)

-- name: delete_empty_lanes
-- $1: channel.
delete from "laneway_lane" where channel_id = $1 and waiting = 0

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
