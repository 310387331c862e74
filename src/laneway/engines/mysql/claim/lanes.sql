-- name: ready_plain_wakes
-- $1..$8: as ready_channels. The wakes, the time and the pauses that concern claims of some kinds.
select 1, w.channel_id, w.at, w.n, w.queue, w.channel, c.id is not null, w.wakes,
    case when c.paused and coalesce(c.paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else c.concurrency - c.leased + w.freed end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, c.credit
from (
    select w.channel_id, min(w.at) as at, sum(w.n) as n, min(w.queue) as queue, min(w.channel) as channel,
        count(*) as wakes, sum(w.freed) as freed
    from (
        select channel_id, at, n, freed, queue, channel from `laneway_wake` force index (wake_order)
        where queue = $1 and at >= $3 and at <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        order by at limit $6 offset $7) w
    group by w.channel_id
) w left join `laneway_channel` c on c.id = w.channel_id
union all
(select 3, null, at, 0, queue, null, 0, 0, null, null, null, null from `laneway_wake` force index (wake_order)
where queue = $1 and at > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by at limit 1)
union all
select 4, null, coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), n,
    null, null, by_kind, fair, (
        select if(concat(connection_id(), ' ', l.server) = @laneway_server, l.number, 0)
        from `laneway_server_life` l order by l.id desc limit 1), null, null, null
from `laneway_turnstile` force index (primary) where name = 'pause'
union all
select 5, null, p.until, p.since, p.queue, p.kind, 0, 0, null, null, null, null from `laneway_pause` p
where p.queue = $1
    and coalesce(p.until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true)
union all
(select 6, null, null, 0, queue, null, 0, 0, null, null, null, null from `laneway_limit_queue` force index (primary)
where queue = $1 limit 1)

-- name: ready_kind_wakes
-- $1..$8: as ready_channels. Wakes of all kinds.
select 1, w.channel_id, w.at, w.n, w.queue, w.channel, c.id is not null, w.wakes,
    case when c.paused and coalesce(c.paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else c.concurrency - c.leased end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, c.credit
from (
    select w.channel_id, min(w.at) as at, sum(w.n) as n, min(w.queue) as queue, min(w.channel) as channel,
        count(*) as wakes
    from (
        select channel_id, at, n, queue, channel from `laneway_kind_wake` force index (kind_wake_all)
        where queue = $1 and at >= $3 and at <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        order by at limit $6 offset $7) w
    group by w.channel_id
) w left join `laneway_channel` c on c.id = w.channel_id
union all
(select 3, null, at, 0, queue, null, 0, 0, null, null, null, null from `laneway_kind_wake` force index (kind_wake_all)
where queue = $1 and at > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by at limit 1)

-- name: ready_lanes
-- $1..$8: as ready_channels, $9: lane. Of a lane it is not known how many messages it has.
(select 0, l.channel_id, l.turn, 1000, l.queue, c.name, 1, 0,
    case when c.paused and coalesce(c.paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else c.concurrency - c.leased end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, l.credit
from `laneway_lane` l force index (lane_ring)
straight_join `laneway_channel` c force index (primary) on c.id = l.channel_id
where l.queue = $1 and l.lane = $9 and l.turn >= $2 and l.turn <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by l.turn limit $4 offset $5)
union all
select 1, w.channel_id, w.at, w.n, w.queue, w.channel, c.id is not null, w.wakes,
    case when c.paused and coalesce(c.paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else c.concurrency - c.leased end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, c.credit
from (
    select w.channel_id, min(w.at) as at, sum(w.n) as n, min(w.queue) as queue, min(w.channel) as channel,
        count(*) as wakes
    from (
        select channel_id, at, n, queue, channel from `laneway_kind_wake` force index (kind_wake_order)
        where queue = $1 and lane = $9 and at >= $3 and at <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        order by at limit $6 offset $7) w
    group by w.channel_id
) w left join `laneway_channel` c on c.id = w.channel_id
union all
(select 2, null, turn, 0, queue, null, 0, 0, null, null, null, null from `laneway_lane` force index (lane_ring)
where queue = $1 and lane = $9 and turn > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by turn limit 1)
union all
(select 3, null, at, 0, queue, null, 0, 0, null, null, null, null from `laneway_kind_wake` force index (kind_wake_order)
where queue = $1 and lane = $9 and at > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by at limit 1)

-- name: next_lane_due
-- $1: queue, $2: now, $3 and $4: from which turn and which wake on the scan read, $5: lane. As next_due.
select
    (select turn from `laneway_lane` force index (lane_ring)
    where queue = $1 and lane = $5 and turn > $2 order by turn limit 1),
    (select at from `laneway_kind_wake` force index (kind_wake_order)
    where queue = $1 and lane = $5 and at > $2 order by at limit 1),
    exists (select 1 from `laneway_lane` force index (lane_ring) where queue = $1 and lane = $5 and turn < $3)
    or exists (select 1 from `laneway_kind_wake` force index (kind_wake_order)
        where queue = $1 and lane = $5 and at < $4)

-- name: next_kind_due
-- $1..$4: as next_due. Of wakes of all kinds.
select null,
    (select at from `laneway_kind_wake` force index (kind_wake_all)
    where queue = $1 and at > $2 order by at limit 1),
    exists (select 1 from `laneway_kind_wake` force index (kind_wake_all) where queue = $1 and at < $4)

-- name: next_plain_wake
-- $1..$4: as next_due.
select null,
    (select at from `laneway_wake` force index (wake_order)
    where queue = $1 and at > $2 order by at limit 1),
    exists (select 1 from `laneway_wake` force index (wake_order) where queue = $1 and at < $4)

-- name: kind_queues
select queue from `laneway_kind_queue`

-- name: add_kind_queue
-- $1: queue.
insert ignore into `laneway_kind_queue` (queue) values ($1)

-- name: lock_known_channels
-- $1: queue. Those that have known work.
select id, places from `laneway_channel` force index (channel_ring) where queue = $1 and turn is not null
order by id for update

-- name: count_kind_queues
-- Claims that have looked before look again, as after a pause.
update `laneway_turnstile` force index (primary)
set n = n + 1, by_kind = (select count(*) from `laneway_kind_queue`) where name = 'pause'

-- name: add_lanes
-- $1: rows, of channels that we have locked.
insert into `laneway_lane` (channel_id, lane, queue, turn, credit, skips, places) values $1...
on duplicate key update turn = values(turn), credit = values(credit), skips = values(skips), places = values(places)

-- name: delete_lane
-- $1: channel, locked by us, $2: lane.
delete from `laneway_lane` where channel_id = $1 and lane = $2

-- name: lanes_of_channels
-- $1: channel ids, locked by us.
select l.channel_id, l.lane, l.turn, l.credit, l.skips, l.places
from $1:keys x straight_join `laneway_lane` l force index (primary) on l.channel_id = unhex(x.id)

-- name: read_kind_wakes
-- $1..$4: as read_wakes, $5: lanes. Columns as those of read_wakes, and the lane.
select w.channel_id, w.priority, group_concat(w.id), sum(w.n), 0,
    min(case when w.n > 0 then w.due end), min(case when w.n > 0 then w.message_id end), w.lane
from (
    select id, channel_id, lane, priority, due, message_id, n
    from `laneway_kind_wake` force index (kind_wake_channel)
    where channel_id in ($1...) and lane in ($5...) and ahead = 1 and at >= $2 and at <= $3
    union all
    select * from (
        select id, channel_id, lane, priority, due, message_id, n
        from `laneway_kind_wake` force index (kind_wake_channel)
        where channel_id in ($1...) and lane in ($5...) and ahead = 0 and at >= $2 and at <= $3 limit $4) plain
) w
group by w.channel_id, w.lane, w.priority

-- name: read_all_kind_wakes
-- $1..$4: as read_wakes. Of all lanes.
select w.channel_id, w.priority, group_concat(w.id), sum(w.n), 0,
    min(case when w.n > 0 then w.due end), min(case when w.n > 0 then w.message_id end), w.lane
from (
    select id, channel_id, lane, priority, due, message_id, n
    from `laneway_kind_wake` force index (kind_wake_channel)
    where channel_id in ($1...) and at >= $2 and at <= $3
) w
group by w.channel_id, w.lane, w.priority

-- name: delete_kind_wakes
-- $1: wake ids.
delete t from $1:ids x straight_join `laneway_kind_wake` t force index (primary) on t.id = x.id

-- name: unsorted_messages
-- $1: number of the visit, $2: channel, $3: priority, $4 and $5: after which due time and id, $6: now, $7: limit. The
-- last columns: whether claims by kind find it, and whether it is leased.
(select $1, $3, m.due, m.id, m.kind, k.message_id is not null, l.message_id is not null
from `laneway_message` m force index (message_order)
    left join `laneway_kind_message` k force index (primary) on k.channel_id = m.channel_id
        and k.lane = concat('=', m.kind) and k.priority = m.priority and k.due = m.due and k.message_id = m.id
    left join `laneway_lease` l force index (primary) on l.message_id = m.id
where ((m.channel_id = $2 and m.priority = $3 and m.due = $4 and m.id > $5)
        or (m.channel_id = $2 and m.priority = $3 and m.due > $4 and m.due <= $6))
    and m.due <= $6
order by m.due, m.id limit $7)

-- name: add_kind_messages
-- $1: rows.
insert ignore into `laneway_kind_message` (channel_id, lane, priority, due, message_id) values $1...

-- name: delete_taken
-- $1: channel, locked by us, $2: lane, $3: priority, $4: (id, due) of messages that a claim has taken.
delete k from $4:pairs x
straight_join `laneway_kind_message` k force index (primary) on k.channel_id = $1 and k.lane = $2
    and k.priority = $3 and k.due = x.fence and k.message_id = x.id

-- name: add_known_leases
-- $1: rows, of messages in channels that we have locked.
insert into `laneway_lease` (message_id, fence, until, claimed_at, channel_id, counted, worker) values $1...

-- name: due_kind_messages
-- $1: number of the visit, $2: channel, $3: lane, $4: priority, $5 and $6: after which due time and id, $7: now,
-- $8: limit. As due_messages, of one lane. What is there has no lease: a claim deletes the rows of what it takes.
(select concat_ws(',', $1, m.id, m.due, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.spent, m.expires_at),
    m.kind, substr(m.`key`, 17) as `key`, m.content_type, m.headers, m.state_type, m.state, m.payload
from `laneway_kind_message` k force index (primary)
    straight_join `laneway_message` m force index (primary) on m.id = k.message_id and m.due = k.due
        and m.priority = k.priority
where ((k.channel_id = $2 and k.lane = $3 and k.priority = $4 and k.due = $5 and k.message_id > $6)
        or (k.channel_id = $2 and k.lane = $3 and k.priority = $4 and k.due > $5 and k.due <= $7))
    and k.due <= $7 and (m.expires_at is null or m.expires_at > $7)
order by k.due, k.message_id limit $8)
