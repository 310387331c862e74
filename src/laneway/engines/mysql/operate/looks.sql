-- name: next_queue
-- $1: name of the last queue seen. The next one that has channels, wakes or dead letters, null at the end. A
-- statement for each, because the server would read the whole index to find all of them.
select nullif(least(
    coalesce((select queue from `laneway_channel` force index (channel_ring) where queue > $1 order by queue limit 1), x'FF'),
    coalesce((select queue from `laneway_wake` force index (wake_order) where queue > $1 order by queue limit 1), x'FF'),
    coalesce((select queue from `laneway_kind_wake` force index (kind_wake_all) where queue > $1 order by queue limit 1), x'FF'),
    coalesce((select queue from `laneway_dead` force index (dead_order) where queue > $1 order by queue limit 1), x'FF')),
    x'FF')

-- name: table_sizes
-- $1: limit. Up to so many leases, and dead-letter counts that were not added up.
select (select count(*) from (select 1 from `laneway_lease` limit $1) l),
    (select count(*) from (select 1 from `laneway_dead_count` limit $1) d)

-- name: queue_sizes
-- $1: queue, $2: limit. Up to so many channels with known work, unread wakes, channels with dead letters, and
-- channels that have a row.
select $1 as queue,
    (select count(*) from (
        select 1 from `laneway_channel` force index (channel_ring) where queue = $1 and turn is not null limit $2) c),
    (select count(*) from (select 1 from `laneway_wake` force index (wake_order) where queue = $1 limit $2) w)
    + (select count(*) from (select 1 from `laneway_kind_wake` force index (kind_wake_all) where queue = $1 limit $2) w),
    (select count(*) from (
        select 1 from `laneway_dead_sum` force index (dead_sum_queue) where queue = $1 limit $2) d),
    (select count(*) from (
        select 1 from `laneway_channel` force index (channel_ring) where queue = $1 limit $2) c)

-- name: look_at_ring
-- $1: queue. Channels with known work. Columns: queue, channel, waiting, scheduled, leased, dead, oldest.
select queue, name, n, 0, 0, 0, oldest from `laneway_channel` force index (channel_ring)
where queue = $1 and turn is not null

-- name: look_at_wakes
-- $1: queue, $2: now. Channels with unread wakes. Of a channel without known work the count can be negative, until
-- the wakes are read that count what was claimed: it is added here.
select w.queue, w.channel, w.waiting + case when c.turn is null then coalesce(c.n, 0) else 0 end, w.scheduled, 0, 0,
    w.oldest
from (
    select channel_id, min(queue) as queue, min(channel) as channel,
        sum(case when due <= coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end) as waiting,
        sum(case when due > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end) as scheduled,
        min(case when n > 0 and due <= coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end) as oldest
    from (
        select channel_id, queue, channel, due, n from `laneway_wake` force index (wake_order) where queue = $1
        union all
        select channel_id, queue, channel, due, n from `laneway_kind_wake` force index (kind_wake_all) where queue = $1
    ) w group by channel_id
) w left join `laneway_channel` c on c.id = w.channel_id

-- name: look_at_leases
-- All channels with leases.
select c.queue, c.name, 0, 0, l.n, 0, null
from (select channel_id, count(*) as n from `laneway_lease` group by channel_id) l
join `laneway_channel` c on c.id = l.channel_id

-- name: look_at_dead
-- $1: queue. Channels with dead letters.
select queue, channel, 0, 0, 0, n, null from `laneway_dead_sum` force index (dead_sum_queue) where queue = $1
union all
select queue, channel, 0, 0, 0, n, null from `laneway_dead_count` where queue = $1

-- name: channels_with_policy
-- $1: queue.
select queue, name, 0, 0, 0, 0, null from `laneway_channel` force index (channel_ring)
where queue = $1
    and (concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused or closing)

-- name: queue_summary
-- $1: queue, $2: limit, $3: now. What the channels that wait longest hold: so many with known work, and of so many
-- unread wakes. Columns: queue, waiting, scheduled, channels, oldest.
select $1 as queue, sum(greatest(t.waiting, 0)), sum(greatest(t.scheduled, 0)), sum(t.waiting > 0 or t.scheduled > 0),
    min(case when t.waiting > 0 then t.oldest end)
from (
    select channel_id, sum(waiting) as waiting, sum(scheduled) as scheduled, min(oldest) as oldest from (
        (select id as channel_id, n as waiting, 0 as scheduled, oldest from `laneway_channel` force index (channel_ring)
        where queue = $1 and turn is not null order by turn limit $2)
        union all
        (select channel_id, case when due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when due > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when n > 0 and due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end
        from `laneway_wake` force index (wake_order) where queue = $1 order by at limit $2)
        union all
        (select channel_id, case when due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when due > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when n > 0 and due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end
        from `laneway_kind_wake` force index (kind_wake_all) where queue = $1 order by at limit $2)
    ) t group by channel_id
) t

-- name: later_wakes
-- $1: queue, $2: limit, $3: now. How many messages are due later, as far as so many wakes say.
select $1 as queue, coalesce(sum(n), 0) from (
    (select n from `laneway_wake` force index (wake_order)
    where queue = $1 and at > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) order by at limit $2)
    union all
    (select n from `laneway_kind_wake` force index (kind_wake_all)
    where queue = $1 and at > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) order by at limit $2)) w

-- name: leases_by_queue
-- $1: limit.
select c.queue, sum(l.n)
from (
    select channel_id, count(*) as n from (select channel_id from `laneway_lease` order by message_id limit $1) l
    group by channel_id
) l join `laneway_channel` c on c.id = l.channel_id
group by c.queue

-- name: dead_by_queue
-- $1: limit of counts that were not added up.
select queue, sum(n) from (
    select queue, n from `laneway_dead_queue`
    union all
    select * from (select queue, n from `laneway_dead_count` order by id limit $1) d
) d group by queue

-- name: kept_counts
-- What upkeep has counted: queue, messages that have not ended, as of when.
select k.queue, sum(k.live), min(f.counted_at)
from `laneway_fold` f join `laneway_kind_count` k where f.known group by k.queue

-- name: fullest_channels
-- $1: queue, $2: rows to look at, $3: now, $4: limit; $5: beginning of the name, $6: paused, $7: whether it has a
-- policy, null for all. The fullest of the channels that wait longest. Columns: queue, channel, waiting, scheduled,
-- leased, dead, oldest.
(select t.queue, t.channel, t.waiting, t.scheduled, 0, 0, t.oldest from (
    select channel_id, min(queue) as queue, min(channel) as channel, sum(waiting) as waiting,
        sum(scheduled) as scheduled, min(oldest) as oldest
    from (
        (select id as channel_id, queue, name as channel, n as waiting, 0 as scheduled, oldest
        from `laneway_channel` force index (channel_ring)
        where queue = $1 and turn is not null order by turn limit $2)
        union all
        (select channel_id, queue, channel, case when due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when due > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when n > 0 and due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end
        from `laneway_wake` force index (wake_order) where queue = $1 order by at limit $2)
        union all
        (select channel_id, queue, channel, case when due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when due > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end,
            case when n > 0 and due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end
        from `laneway_kind_wake` force index (kind_wake_all) where queue = $1 order by at limit $2)
    ) t group by channel_id
) t left join `laneway_channel` c on c.id = t.channel_id
where ($5 is null or left(t.channel, octet_length($5)) = $5) and ($6 is null
        or $6 = coalesce(c.paused and coalesce(c.paused_until > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true), false))
    and ($7 is null or $7 = coalesce(c.concurrency is not null or c.rate is not null or c.backlog is not null
        or c.weight <> 1 or c.paused or c.closing, false))
    and (t.waiting > 0 or t.scheduled > 0)
order by t.waiting desc, t.channel limit $4)

-- name: look_at_channels
-- $1: channel ids, $2: limit of wakes and leases, $3: now. What these channels hold; the last column is how many
-- wakes were read for it.
select queue, name, n, 0, 0, 0, oldest, 0 from `laneway_channel` where id in ($1...)
union all
select min(queue), min(channel), sum(case when due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end),
    sum(case when due > coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then n else 0 end), 0, 0,
    min(case when n > 0 and due <= coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) then due end), count(*)
from (
    (select channel_id, queue, channel, due, n from `laneway_wake` force index (wake_channel)
    where channel_id in ($1...) limit $2)
    union all
    (select channel_id, queue, channel, due, n from `laneway_kind_wake` force index (kind_wake_channel)
    where channel_id in ($1...) limit $2)) w
group by channel_id
union all
select c.queue, c.name, 0, 0, count(*), 0, null, 0
from (select channel_id from `laneway_lease` order by message_id limit $2) l
join `laneway_channel` c on c.id = l.channel_id
where l.channel_id in ($1...) group by l.channel_id, c.queue, c.name
union all
select queue, channel, 0, 0, 0, n, null, 0 from `laneway_dead_sum` where channel_id in ($1...)

-- name: look_at_dead_counts
-- $1: limit. Dead-letter counts that were not added up.
select queue, channel, 0, 0, 0, n, null from `laneway_dead_count` order by id limit $1

-- name: channel_policies
-- $1: channel ids, $2: now. Columns: queue, name, the policy, and whether its rate is used up.
select queue, name, concurrency, rate, burst, backlog, weight,
    paused and coalesce(paused_until > coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true), closing, paused_until, throttled,
    coalesce(burst - greatest(0, coalesce(tat, 0) - coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * rate < 1, false)
from `laneway_channel` where id in ($1...)

-- name: next_channels
-- $1: id of the last channel seen, $2: limit. Columns: id, queue, name, whether it has a policy.
select id, queue, name, concurrency is not null or rate is not null or backlog is not null or weight <> 1 or paused
    or closing
from `laneway_channel` force index (primary) where id > $1 order by id limit $2
