-- name: queue_names
-- $1: limit. Queues that have channels or dead letters, one index lookup each.
with recursive living (queue) as (
    select (select c.queue from "laneway_channel" c order by c.queue limit 1)
    union all
    select (select c.queue from "laneway_channel" c where c.queue > q.queue order by c.queue limit 1)
    from living q where q.queue is not null
),
dead (queue) as (
    select (select d.queue from "laneway_dead_count" d order by d.queue limit 1)
    union all
    select (select d.queue from "laneway_dead_count" d where d.queue > q.queue order by d.queue limit 1)
    from dead q where q.queue is not null
)
select queue from living where queue is not null
union
select queue from dead where queue is not null
order by queue limit $1

-- name: ready_channel_ids
-- $1: queue, $2: limit. Channels that have a turn, and thus messages that wait.
select id from "laneway_channel" where queue = $1 and turn is not null limit $2

-- name: parked_channel_ids
-- $1: queue, $2: limit. The other channels in which messages wait.
select id from "laneway_channel" where queue = $1 and turn is null and waiting > 0 limit $2

-- name: leased_channels
-- $1: limit of leases. Channels that have leases and nothing that waits, and how many leases were read.
select c.queue, c.id, n.leases
from (select count(*) as leases from (select 1 from "laneway_lease" limit $1)) n
left join (select distinct channel_id from (select channel_id from "laneway_lease" limit $1)) l
left join "laneway_channel" c on c.id = l.channel_id and c.waiting = 0

-- name: queue_channels
-- $1: queue, $2: limit. All channels, and whether they hold anything.
select id, waiting > 0 or leased > 0 from "laneway_channel" where queue = $1 order by name limit $2

-- name: limited_channels
-- $1: queue, $2: limit, $3: from which name on, $4: before which (a blob comes after all names). Channels that have a policy.
select id, name from "laneway_channel"
where queue = $1 and name >= $3 and name < $4
    and (concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused
        or closing)
order by name limit $2

-- name: paused_channels
-- $1: queue, $2: limit, $3: from which name on, $4: before which (a blob comes after all names).
select id, name from "laneway_channel"
where queue = $1 and name >= $3 and name < $4 and paused order by name limit $2

-- name: named_channels
-- $1: queue, $2: limit, $3: from which name on, $4: before which (a blob comes after all names).
select id, name from "laneway_channel"
where queue = $1 and name >= $3 and name < $4 order by name limit $2

-- name: look_at_channels
-- $1: ids, $2: now, $3: how far to count. Their counts, schedule and policy. later: how many are scheduled,
-- due: how many are due, counted only if there are more of the others than that; neither is counted
-- further. If nothing is due before next_due, all are scheduled. Most channels have one priority; of the others p
-- goes from one priority that they have to the next, as high_priorities does.
with found as materialized (
    select c.*, case
        when c.waiting = 0 then 0
        when c.next_due > $2 then c.waiting
        when c.bands = 1 then (
            select count(*) from (select 1 from "laneway_waiting" w
                where w.channel_id = c.id and w.priority = 0 and w.due > $2 limit $3))
        else (
            select count(*) from (
                with recursive p (value) as (
                    select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id)
                    union all
                    select (select min(x.priority) from "laneway_waiting" x where x.channel_id = c.id and x.priority > p.value)
                    from p where p.value is not null)
                select 1 from p cross join "laneway_waiting" w
                where w.channel_id = c.id and w.priority = p.value and w.due > $2 limit $3)) end as later
    from json_each($1) j cross join "laneway_channel" c where c.id = j.value
)
select f.id, f.queue, f.name, f.waiting, f.leased, f.later,
    case when f.later >= $3 and f.later < f.waiting then (
        select count(*) from (
            with recursive p (value) as (
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = f.id)
                union all
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = f.id and x.priority > p.value)
                from p where p.value is not null)
            select 1 from p cross join "laneway_waiting" w
            where w.channel_id = f.id and w.priority = p.value and w.due <= $2 limit $3)) end as due,
    case when f.later = f.waiting then null
        when f.bands = 1 then (
            select w.due from "laneway_waiting" w
            where w.channel_id = f.id and w.priority = 0 order by w.due limit 1)
        else (
            with recursive p (value) as (
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = f.id)
                union all
                select (select min(x.priority) from "laneway_waiting" x where x.channel_id = f.id and x.priority > p.value)
                from p where p.value is not null)
            select min((select w.due from "laneway_waiting" w
                where w.channel_id = f.id and w.priority = p.value order by w.due limit 1)) from p) end as oldest,
    coalesce((select d.n from "laneway_dead_count" d where d.queue = f.queue and d.channel = f.name), 0),
    (select s.scheduled from "laneway_split_count" s where s.channel_id = f.id),
    f.next_due, f.open_at,
    f.concurrency, f.rate, f.burst, f.backlog, f.weight, f.paused and coalesce(f.paused_until > $2, 1), f.closing,
    case when coalesce(f.paused_until > $2, 1) then f.paused_until end,
    f.throttled and f.paused and coalesce(f.paused_until > $2, 0)
from found f

-- name: dead_counts
-- $1: queue, $2: limit, $3: from which channel on, $4: before which.
select channel, n from "laneway_dead_count"
where queue = $1 and channel >= $3 and channel < $4 order by channel limit $2

-- name: counted_queues
-- What upkeep has counted, when, and which message was the last one then.
select queue, waiting, scheduled, leased, dead, channels, oldest_due, counted_at, message_id
from "laneway_queue_count"

-- name: published_since
-- $1: the last message before, $2: limit. Of the newest messages, how many are in which queue; the last id.
select c.queue, count(*), s.message_id
from "laneway_state" s
cross join (select channel_id from "laneway_message" where id > $1 order by id desc limit $2) m
cross join "laneway_channel" c
where c.id = m.channel_id group by c.queue

-- name: fullest_channels
-- $1: queue, $2: limit. As upkeep counted them last.
select channel_id from "laneway_fullest" where queue = $1 order by place limit $2
