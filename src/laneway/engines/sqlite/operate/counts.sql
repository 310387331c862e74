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
        select count(*) from (
            with recursive p (value) as (
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id)
                union all
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id and x.priority > p.value)
                from p where p.value is not null)
            select 1 from p cross join "laneway_waiting" w
            where w.channel_id = c.id and w.priority = p.value and w.due > $3 limit $4)) end as later
from "laneway_channel" c
where c.id > $1 and c.id <= $2 and (c.waiting > 0 or c.leased > 0)

-- name: count_scheduled
-- $1: channel, $2: now.
with recursive p (value) as (
    select (select min(x.priority) from "laneway_waiting" x where x.channel_id = $1)
    union all
    select (select min(x.priority) from "laneway_waiting" x where x.channel_id = $1 and x.priority > p.value)
    from p where p.value is not null)
select count(*) from p cross join "laneway_waiting" w
where w.channel_id = $1 and w.priority = p.value and w.due > $2

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

-- name: add_kind_count
-- $1: queue, $2: kind, $3: how many more have not ended.
insert into "laneway_kind_count" (queue, kind, live) values ($1, $2, $3)
on conflict (queue, kind) do update set live = live + excluded.live

-- name: recount_needed
-- $1: how many messages, and how many ends, can be counted at once. Whether the counts by kind are wrong, and
-- can be made right.
select f.kinds_counted is not f.history_changes and s.history = 'all'
    and (select count(*) from (select 1 from "laneway_message" limit $1)) < $1
    and (select count(*) from (select 1 from "laneway_history" h where h.id > f.history_id limit $1)) < $1
from "laneway_fold" f, "laneway_state" s

-- name: recount_kinds
-- As of the position in fold, which comes first in each row: messages that were published by then, and that
-- have not ended, or ended after it.
select f.message_id, f.history_id, f.history_changes, k.queue, k.kind, sum(k.n)
from "laneway_fold" f left join (
    select c.queue, m.kind, 1 as n, m.id from "laneway_message" m join "laneway_channel" c on c.id = m.channel_id
    union all
    select h.queue, h.kind, case when h.dead or h.outcome in ('completed', 'cancelled', 'lapsed') then 1
        when h.outcome = 'redriven' then -1 else 0 end, h.message_id
    from "laneway_history" h where h.id > (select p.history_id from "laneway_fold" p)
) k on k.id <= f.message_id
group by k.queue, k.kind

-- name: take_recount
-- $1, $2 and $3: the position, and the changes of the history's setting, that the new counts are of. Answers
-- nothing if either has moved since.
update "laneway_fold" set kinds_counted = history_changes
where message_id = $1 and history_id = $2 and history_changes = $3 and kinds_counted is not history_changes
    and (select s.history = 'all' from "laneway_state" s)
returning single

-- name: clear_kind_counts
delete from "laneway_kind_count"

-- name: kind_counts
-- Whether the counts are right and there is nothing to count, then a count by kind; those that had messages when
-- depths were noted last are there too. A row without queue if there is none.
select f.kinds_counted is f.history_changes,
    f.message_id >= s.message_id and f.history_id >= coalesce((select max(h.id) from "laneway_history" h), 0),
    k.queue, k.kind, max(0, max(k.live))
from "laneway_fold" f cross join "laneway_state" s left join (
    select queue, kind, live from "laneway_kind_count"
    union all
    select queue, kind, 0 from "laneway_kind_depth"
    where at = (select at from "laneway_kind_depth" order by at desc limit 1) and depth > 0
) k on true
group by k.queue, k.kind

-- name: add_kind_depth
-- $1: minute, $2: queue, $3: kind, $4: depth.
insert into "laneway_kind_depth" (at, queue, kind, depth) values ($1, $2, $3, $4)
on conflict (at, queue, kind) do nothing

-- name: delete_empty_kind_counts
-- $1: limit.
delete from "laneway_kind_count" where (queue, kind) in (
    select queue, kind from "laneway_kind_count" where live = 0 limit $1)

-- name: delete_old_kind_depths
-- $1: before, $2: limit.
delete from "laneway_kind_depth" where (at, queue, kind) in (
    select at, queue, kind from "laneway_kind_depth" where at < $1 order by at limit $2)
returning 1

-- name: kind_depths
-- $1: since, $2: until, $3: queue and $4: kind, null for all, $5: step, $6: the last step. Depths at the end of
-- each step; of the last one those that there are. Rows without queue and kind say which minutes were noted.
select k.at, k.queue, k.kind, k.depth, d.oldest_due
from "laneway_kind_depth" k left join "laneway_depth" d on d.at = k.at and d.queue = k.queue
where k.at >= $1 and k.at < $2 and (k.at % $5 = $5 - 60000000 or k.at >= $6)
    and (k.queue = '' or ($3 is null or k.queue = $3) and ($4 is null or k.kind = $4))
order by k.at, k.queue, k.kind
