-- name: read_wakes
-- $1: channel ids, locked by us, $2: from which time on, $3: now, $4: limit. Wakes of messages that may have to
-- start first (ahead) are all read, whatever the limit. The last column: how many queues are claimed by kind.
select w.channel_id, w.priority, group_concat(w.id), sum(w.n), sum(w.freed),
    min(case when w.n > 0 then w.due end), min(case when w.n > 0 then w.message_id end),
    (select by_kind from `laneway_turnstile` force index (primary) where name = 'pause')
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
    m.kind, m.`key`, m.content_type, m.headers, m.state_type, m.state, m.payload
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
