-- name: count_needed
-- $1: now, $2: channels and $3: messages that a look can count itself. Whether it is time to count, the last
-- channel and the last message. (Ids are not reused within the range, so they say how many there can be.)
select f.count_at <= $1 and (coalesce(c.last, 0) > $2 or coalesce(m.last - m.first, 0) > $3), c.last,
    s.message_id
from "laneway_fold" f, "laneway_state" s,
    (select (select id from "laneway_channel" order by id desc limit 1) as last) c,
    (select (select id from "laneway_message" order by id desc limit 1) as last,
        (select id from "laneway_message" order by id limit 1) as first) m

-- name: take_count
-- $1: now, $2: when others count if this process does not finish. Answers nothing if another one counts.
update "laneway_fold" set count_at = $2 where count_at <= $1 returning single

-- name: count_channels
-- $1 and $2: from after one id to another, $3: now, $4: how far to count. As in look_at_channels, of
-- channels that have messages.
select c.id, c.queue, c.waiting, c.leased, c.next_due, case
    when c.waiting = 0 then 0
    when c.next_due > $3 then c.waiting
    when c.bands = 1 then (
        select count(*) from (select 1 from "laneway_waiting" w
            where w.channel_id = c.id and w.priority = 0 and w.due > $3 limit $4))
    else (
        select count(*) from (select 1 from "laneway_waiting" w
            where w.channel_id = c.id and w.priority in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
                and w.due > $3 limit $4)) end as later
from "laneway_channel" c
where c.id > $1 and c.id <= $2 and (c.waiting > 0 or c.leased > 0)

-- name: count_scheduled
-- $1: channel, $2: now.
select count(*) from "laneway_waiting" w
where w.channel_id = $1 and w.priority in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) and w.due > $2

-- name: sum_dead_counts
select queue, sum(n), sum(n > 0) from "laneway_dead_count" group by queue

-- name: finish_count
-- $1: when to count again.
update "laneway_fold" set count_at = $1

-- name: clear_queue_counts
delete from "laneway_queue_count"

-- name: clear_fullest
delete from "laneway_fullest"

-- name: clear_split_counts
delete from "laneway_split_count"

-- name: add_queue_count
-- $1..$9: a row.
insert into "laneway_queue_count" (
    queue, waiting, scheduled, leased, dead, channels, oldest_due, counted_at, message_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: add_fullest
-- $1: queue, $2: place, $3: channel.
insert into "laneway_fullest" (queue, place, channel_id) values ($1, $2, $3)

-- name: add_split_count
-- $1: channel, $2: how many are scheduled.
insert into "laneway_split_count" (channel_id, scheduled) values ($1, $2)
