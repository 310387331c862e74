-- name: ready_channels
-- $1: queue, $2: from which turn on, $3: from which wake on, $4: limit and $5: offset of turns, $6: limit and
-- $7: offset of wakes, $8: now.
-- Columns: kind, channel, time, number of messages, queue, name, whether the channel has a row, number of wakes
-- read, free slots and starts that its rate allows (null: no limit), weight, credit.
-- Kinds: 0 a channel in the ring, 1 the wakes of a channel, 2 the next turn to come, 3 the next wake to come,
-- 4 the time, how many pauses there were, how many queues are claimed by kind, how many are fair by time, and the number of this life of the server (as the statement server_life), 5 a pause of the queue (its name is null) or of a kind: until when (null: for good), and since when,
-- 6 something waits for shared limits.
(select 0, id, turn, n, queue, name, 1, 0,
    case when paused and coalesce(paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else concurrency - leased end,
    burst - greatest(0, coalesce(tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * rate, weight, credit
from `laneway_channel` force index (channel_ring)
where queue = $1 and turn >= $2
    and turn <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by turn limit $4 offset $5)
union all
select 1, w.channel_id, w.at, w.n, w.queue, w.channel, c.id is not null, w.wakes,
    case when c.paused and coalesce(c.paused_until > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), true) then 0
        else c.concurrency - c.leased + w.freed end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, c.credit
from (
    select w.channel_id, min(w.at) as at, sum(w.n) as n, min(w.queue) as queue, min(w.channel) as channel,
        count(*) as wakes, sum(w.freed) as freed
    from (
        select channel_id, at, n, freed, queue, channel from `laneway_wake` force index (wake_order)
        where queue = $1 and at >= $3
            and at <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        order by at limit $6 offset $7) w
    group by w.channel_id
) w left join `laneway_channel` c on c.id = w.channel_id
union all
(select 2, null, turn, 0, queue, null, 0, 0, null, null, null, null from `laneway_channel` force index (channel_ring)
where queue = $1
    and turn > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by turn limit 1)
union all
(select 3, null, at, 0, queue, null, 0, 0, null, null, null, null from `laneway_wake` force index (wake_order)
where queue = $1
    and at > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
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

-- name: next_due
-- $1: queue, $2: now, $3 and $4: from which turn and which wake on the scan read. Columns: the next turn to
-- come (far in the future if there are only parked channels), the next wake, and whether anything is below where
-- the scan started.
select
    (select turn from `laneway_channel` force index (channel_ring)
    where queue = $1 and turn > $2 order by turn limit 1),
    (select at from `laneway_wake` force index (wake_order)
    where queue = $1 and at > $2 order by at limit 1),
    exists (select 1 from `laneway_channel` force index (channel_ring) where queue = $1 and turn < $3)
    or exists (select 1 from `laneway_wake` force index (wake_order) where queue = $1 and at < $4)
