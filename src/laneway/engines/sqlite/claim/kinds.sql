-- name: lane_status
-- What a claim of these kinds would find. Writes nothing. $1: queues, $2: kinds, $3: now. Returns: ready, blocked,
-- when the next lane wakes or a pause ends; whether anything of theirs waits for shared limits, and whether a queue is
-- not ready for claims by kind.
with paused as materialized (
    select p.queue, p.kind, p.until from "laneway_pause" p
    where (p.until is null or p.until > $3) and p.queue in (select value from json_each($1))
        and (p.kind is null or p.kind in (select value from json_each($2)))),
lane as materialized (
    select q.value as queue, k.value as kind from json_each($1) q cross join json_each($2) k
    where not exists (
        select 1 from paused p where p.queue = q.value and (p.kind is null or p.kind = k.value)))
select
    exists (
        select 1 from lane n cross join "laneway_lane" l
        where l.queue = n.queue and l.kind = n.kind and l.turn is not null)
    or exists (
        select 1 from lane n cross join "laneway_lane" l
        where l.queue = n.queue and l.kind = n.kind and l.wake_at <= $3) as ready,
    exists (
        select 1 from lane n cross join "laneway_lane" l
        where l.queue = n.queue and l.kind = n.kind and l.turn is null and l.next_due <= $3)
    or exists (select 1 from paused) as blocked,
    (select min(n.at) from (
        select (
            select l.wake_at from "laneway_lane" l
            where l.queue = n.queue and l.kind = n.kind and l.wake_at > $3 order by l.wake_at limit 1) as at
        from lane n
        union all
        select p.until from paused p) n) as next_at,
    exists (
        select 1 from json_each($1) q cross join "laneway_limit_queue" l where l.queue = q.value) as limited,
    exists (
        select 1 from json_each($1) q
        where q.value not in (select k.queue from "laneway_kind_queue" k where k.ready)) as unready

-- name: add_kind_queue
-- $1: queue. What waits now is moved in steps.
insert into "laneway_kind_queue" (queue, moved_to, move_end, ready)
select $1, 0, message_id, 0 from "laneway_state" where true
on conflict (queue) do nothing
returning 1

-- name: count_kind_queue
update "laneway_state" set by_kind = by_kind + 1

-- name: kind_queue
-- $1: queue.
select moved_to, move_end, ready from "laneway_kind_queue" where queue = $1

-- name: waiting_in_queue
-- $1: queue.
select coalesce(sum(waiting), 0) from "laneway_channel" where queue = $1

-- name: move_queue
-- $1: queue. As move_waiting, all of it.
insert or ignore into "laneway_kind_waiting" (channel_id, kind, priority, due, message_id, expires_at)
select m.channel_id, m.kind, m.priority, m.due, m.id, m.expires_at
from "laneway_channel" c cross join "laneway_waiting" w cross join "laneway_message" m
where c.queue = $1 and w.channel_id = c.id and m.id = w.message_id

-- name: end_of_move
-- $1: the last message id that was looked at, $2: the last one of all, $3: limit. Up to which id to move now.
select max(m.id) from (
    select id from "laneway_message" where id > $1 and id <= $2 order by id limit $3) m

-- name: move_waiting
-- $1: queue, $2: after which message id, $3: up to which one. What waits of them is found by kind from now on;
-- some may be so already.
insert or ignore into "laneway_kind_waiting" (channel_id, kind, priority, due, message_id, expires_at)
select m.channel_id, m.kind, m.priority, m.due, m.id, m.expires_at
from "laneway_message" m cross join "laneway_channel" c cross join "laneway_waiting" w
where m.id > $2 and m.id <= $3 and c.id = m.channel_id and c.queue = $1
    and w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due and w.message_id = m.id

-- name: moved
-- $1: queue, $2: up to which message id, $3: whether that was all.
update "laneway_kind_queue" set moved_to = $2, ready = $3 where queue = $1

-- name: add_lanes
-- $1: queue. All lanes of a queue in which everything was moved; their turns are given afterwards.
insert into "laneway_lane" (channel_id, kind, queue, waiting, bands, next_due)
select k.channel_id, k.kind, c.queue, count(*), sum(distinct 1 << min(k.priority, 61)), min(k.due)
from "laneway_channel" c cross join "laneway_kind_waiting" k
where c.queue = $1 and k.channel_id = c.id
group by k.channel_id, k.kind

-- name: lane_channels
-- $1: queue. The channels that have lanes.
select c.id from "laneway_channel" c
where c.queue = $1 and exists (select 1 from "laneway_lane" l where l.channel_id = c.id)
order by c.turn is null, c.turn, c.id

-- name: lanes_to_wake
-- $1: queues, $2: kinds, $3: now. Those of which a lane wakes now.
select q.value, k.value from json_each($1) q cross join json_each($2) k
where exists (
    select 1 from "laneway_lane" l where l.queue = q.value and l.kind = k.value and l.wake_at <= $3)

-- name: wake_lanes
-- $1: queue, $2: kind, $3: now, $4: the first turn to give, $5: limit. As wake_channels.
update "laneway_lane" set turn = $4 + x.place - 1, wake_at = null
from (
    select y.channel_id, row_number() over (order by y.wake_at, y.channel_id) as place
    from (
        select channel_id, wake_at from "laneway_lane"
        where queue = $1 and kind = $2 and wake_at <= $3 order by wake_at limit $5) y
) x
where "laneway_lane".channel_id = x.channel_id and "laneway_lane".kind = $2

-- name: ready_lanes
-- $1: queues, $2: kinds, $3: after which turn, $4: limit, $5: now. For each queue and kind the turns and channels of
-- lanes that can start a message now; none of a queue or kind that is paused.
select (
    select json_group_array(json_array(x.turn, x.channel_id)) from (
        select l.turn, l.channel_id from "laneway_lane" l
        where l.queue = q.value and l.kind = k.value and l.turn > $3 order by l.turn limit $4) x)
from json_each($1) q cross join json_each($2) k
where not exists (
    select 1 from "laneway_pause" p
    where p.queue = q.value and (p.kind is null or p.kind = k.value) and (p.until is null or p.until > $5))

-- name: lanes_of_channels
-- $1: channels, $2: kinds, $3: now. Their lanes that are ready, in turn, each with what a claim must know of the channel.
select c.id, l.turn, c.weight, c.concurrency, c.rate, c.burst, l.waiting, c.leased, l.bands, c.tat, l.credit,
    l.skips, l.kind, c.bands, c.skips, c.waiting, c.queue
from json_each($1) j cross join "laneway_channel" c cross join "laneway_lane" l
where c.id = j.value and l.channel_id = c.id and l.kind in (select value from json_each($2))
    and l.turn is not null and not exists (
        select 1 from "laneway_pause" p
        where p.queue = l.queue and (p.kind is null or p.kind = l.kind) and (p.until is null or p.until > $3))
order by j.key, l.turn

-- name: due_messages_of_kind
-- $1: channel, $2: kind, $3: priority, $4: now, $5: limit. In the order in which they start.
select priority, due, message_id from "laneway_kind_waiting"
where channel_id = $1 and kind = $2 and priority = $3 and due <= $4 and (expires_at is null or expires_at > $4)
order by due, message_id limit $5

-- name: high_priorities_of_kind
-- $1: channel, $2: kind, $3: from which priority on. As high_priorities.
with recursive p (value) as (
    select (select max(w.priority) from "laneway_kind_waiting" w
        where w.channel_id = $1 and w.kind = $2 and w.priority >= $3)
    union all
    select (select max(w.priority) from "laneway_kind_waiting" w
        where w.channel_id = $1 and w.kind = $2 and w.priority >= $3 and w.priority < p.value)
    from p where p.value is not null
)
select value from p where value is not null

-- name: kind_and_expiry
-- $1: message.
select kind, expires_at from "laneway_message" where id = $1

-- name: lease_kind
-- $1: channel, $2: kind, $3: priority, $4 and $5: due and id of the last message, $6: now, $7: fence, $8: until.
insert into "laneway_lease" (fence, message_id, channel_id, until)
select $7, message_id, channel_id, $8 from "laneway_kind_waiting"
where channel_id = $1 and kind = $2 and priority = $3 and (due, message_id) <= ($4, $5)
    and (expires_at is null or expires_at > $6)

-- name: delete_run
-- $1: channel, $2: priority, $3: due, $4 and $5: the first and the last id. All of these were claimed.
delete from "laneway_waiting"
where channel_id = $1 and priority = $2 and due = $3 and message_id between $4 and $5

-- name: delete_claimed_kind
-- $1..$6: as lease_kind.
delete from "laneway_kind_waiting"
where channel_id = $1 and kind = $2 and priority = $3 and (due, message_id) <= ($4, $5)
    and (expires_at is null or expires_at > $6)

-- name: next_due_of_kind
-- $1: channel, $2: kind, $3: priorities, $4: now. For each of them when its first unexpired message is due.
select p.value as priority, (
    select w.due from "laneway_kind_waiting" w
    where w.channel_id = $1 and w.kind = $2 and w.priority = p.value
        and (w.expires_at is null or w.expires_at > $4)
    order by w.due limit 1) as due
from json_each($3) p

-- name: update_served_lane
-- $1: channel, $2: kind, $3: how many were taken, $4: credit, $5: skips, $6: turn. More of it is due.
update "laneway_lane" set waiting = waiting - $3, credit = $4, skips = $5, turn = $6
where channel_id = $1 and kind = $2

-- name: update_emptied_lane
-- $1: channel, $2: kind, $3: how many were taken, $4: credit, $5: skips, $6: turn, $7: bands, $8: next_due. Nothing
-- more of it is due.
update "laneway_lane" set waiting = waiting - $3, credit = $4, skips = $5, turn = $6, bands = $7, next_due = $8
where channel_id = $1 and kind = $2

-- name: count_starts
-- $1: channel, $2: how many were started. It has no limits, and more of it waits.
update "laneway_channel" set waiting = waiting - $2, leased = leased + $2 where id = $1

-- name: claimed_of_kind
-- $1: message ids, in the order in which they start; $2: fence. As claimed_messages; no kind of them is paused.
select m.id, $2, c.queue, c.name, m.kind, m.priority, m.attempt + 1, m.max_attempts,
    m.due / 1e6, m.published_at / 1e6, m.first_published_at / 1e6, m.expires_at / 1e6,
    substr(m.key, 17) as key, m.content_type, m.headers, m.state_type, m.state, m.payload, m.spent, null
from json_each($1) j cross join "laneway_message" m cross join "laneway_channel" c
where m.id = j.value and c.id = m.channel_id

-- name: update_starts
-- $1: channel, $2: tat, $3: open_at, $4: skips.
update "laneway_channel" set tat = $2, open_at = $3, skips = $4 where id = $1

-- name: hold_lane
-- The next message of a channel that starts one at a time is of another kind. $1: channel, $2: kind, $3: when that
-- message expires (or null), $4: now. The lane wakes then, or when its next message is due, which may come first;
-- and whatever changes in the channel wakes it too.
update "laneway_lane" set turn = null, credit = 0, wake_at = (
    with recursive p (value) as (
        select (select min(x.priority) from "laneway_kind_waiting" x where x.channel_id = $1 and x.kind = $2)
        union all
        select (select min(x.priority) from "laneway_kind_waiting" x where x.channel_id = $1 and x.kind = $2 and x.priority > p.value)
        from p where p.value is not null)
    select min(t.at) from (
        select (
            select w.due from "laneway_kind_waiting" w
            where w.channel_id = $1 and w.kind = $2 and w.priority = p.value and w.due > $4
            order by w.due limit 1) as at
        from p
        union all
        select $3) t)
where channel_id = $1 and kind = $2
