-- name: read_wakes
-- $1: channel ids, locked by us, $2: from which time on, $3: now, $4: limit. Wakes of messages that may have to
-- start first (ahead) are all read, whatever the limit. The last columns: how many queues are
-- claimed by kind, and of leases that ended how long they took, and how many these were.
select w.channel_id, w.priority, group_concat(w.id), sum(w.n), sum(w.freed),
    min(case when w.n > 0 then w.due end), min(case when w.n > 0 then w.message_id end),
    (select by_kind from `laneway_turnstile` force index (primary) where name = 'pause'),
    -sum(case when w.freed > 0 then w.message_id else 0 end),
    sum(case when w.freed > 0 and w.message_id < 0 then w.freed else 0 end)
from (
    select id, channel_id, priority, due, message_id, n, freed
    from `laneway_wake` force index (wake_channel)
    where channel_id in ($1...) and ahead = 1 and at >= $2 and at <= $3
    union all
    select * from (
        select id, channel_id, priority, due, message_id, n, freed
        from `laneway_wake` force index (wake_channel)
        where channel_id in ($1...) and ahead = 0 and at >= $2 and at <= $3 limit $4) plain
) w
group by w.channel_id, w.priority

-- name: due_messages
-- $1: number of the visit, $2: channel, $3: priority, $4 and $5: after which due time and id, $6: now, $7: limit.
-- Two ranges of one index: messages due at the same time as the last one taken, and messages due later. The
-- numbers are one text: drivers in Python take a microsecond for each column.
(select concat_ws(',', $1, m.id, m.due, m.priority, m.published_at, m.first_published_at, m.attempt,
        m.max_attempts, m.spent, m.expires_at),
    m.kind, substr(m.`key`, 17) as `key`, m.content_type, m.headers, m.state_type, m.state, m.payload
from `laneway_message` m force index (message_order)
    left join `laneway_lease` l force index (primary) on l.message_id = m.id
where ((m.channel_id = $2 and m.priority = $3 and m.due = $4 and m.id > $5)
        or (m.channel_id = $2 and m.priority = $3 and m.due > $4 and m.due <= $6))
    and m.due <= $6 and (m.expires_at is null or m.expires_at > $6) and l.message_id is null
order by m.due, m.id limit $7)

-- name: add_fence_unless_paused
-- $1: how many pauses there were when this claim looked. Returns the fence, or 0 if there was another one since. A
-- pause that begins now waits for this claim, and this waits for one that is not committed yet.
insert into `laneway_fence` (id)
select null from `laneway_turnstile` force index (primary) where name = 'pause' and n = $1 lock in share mode

-- name: add_leases
-- $1: message ids of channels that we have locked, $2: fence, $3: until, $4: now, $5: worker.
insert into `laneway_lease` (message_id, fence, until, claimed_at, channel_id, counted, worker)
select m.id, $2, $3, $4, m.channel_id, c.concurrency is not null, $5
from $1:ids x
straight_join `laneway_message` m force index (primary) on m.id = x.id
straight_join `laneway_channel` c force index (primary) on c.id = m.channel_id

-- name: update_served_channels
-- $1: rows, locked by us: this insert only sets their columns.
insert into `laneway_channel` (id, queue, name, turn, n, leased, tat, credit, skips, oldest, places)
values $1...
on duplicate key update turn = values(turn), n = values(n), leased = values(leased), tat = values(tat),
    credit = values(credit), skips = values(skips), oldest = values(oldest), places = values(places)

-- name: delete_wakes
-- $1: wake ids.
delete t from $1:ids x straight_join `laneway_wake` t force index (primary) on t.id = x.id

-- name: fair_paces
-- $1: queues, $2: now. Of those that are fair by time: how much every channel has had (where the lowest is that can
-- start something), and how far ahead of that one may get.
select q.queue, coalesce((
    select f.booked from `laneway_fair_channel` f force index (fair_channel_order)
    straight_join `laneway_channel` c force index (primary) on c.id = f.channel_id
    where f.queue = q.queue and f.booked >= q.reached - 100 * q.turn
        and c.turn <= coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
    order by f.booked limit 1), q.reached), q.turn
from `laneway_fair_queue` q where q.queue in ($1...)

-- name: lock_reached
-- $1: queue, $2: how much every channel has had. Nothing if somebody else is at it, or if it is hardly more.
select queue from `laneway_fair_queue` where queue = $1 and reached + turn <= $2 for update skip locked

-- name: note_reached
-- $1: queue, locked by us, $2: how much every channel has had.
update `laneway_fair_queue` set reached = $2 where queue = $1

-- name: fair_channels
-- $1: channel ids, locked by us. What was noted since the queue is fair by time.
select f.channel_id, f.used, f.booked, f.cost, f.since
from $1:keys x straight_join `laneway_fair_channel` f force index (primary) on f.channel_id = unhex(x.id)
straight_join `laneway_fair_queue` q force index (primary) on q.queue = f.queue and q.since <= f.since

-- name: note_times
-- $1: rows, of channels that we have locked.
insert into `laneway_fair_channel` (channel_id, queue, used, booked, cost, since) values $1...
on duplicate key update used = values(used), booked = values(booked), cost = values(cost), since = values(since)
