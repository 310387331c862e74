-- $1: queue, $2: from which turn on, $3: from which wake on, $4: how many turns, $5: skipping how
-- many, $6: how many wakes, $7: skipping how many, $8: now.
-- Rows: kind, channel, time, how many, queue, name, whether the channel has a row, wakes read, its free
-- slots and what its rate allows (null: no limit), its weight and its credit.
-- Kind 0: a channel in the ring; 1: the wakes of a channel; 2: the next turn to come; 3: the next
-- wake to come; 4: the clock.
(select 0, id, turn, n, queue, name, 1, 0,
    case when paused then 0 else concurrency - leased end,
    burst - greatest(0, coalesce(tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * rate, weight, credit
from `penstock_channel` force index (channel_ring)
where queue = $1 and turn >= $2
    and turn <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by turn limit $4 offset $5)
union all
select 1, w.channel_id, w.at, w.n, w.queue, w.channel, c.id is not null, w.wakes,
    case when c.paused then 0 else c.concurrency - c.leased + w.freed end,
    c.burst - greatest(0, coalesce(c.tat, 0) - coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))) / 1000000 * c.rate, c.weight, c.credit
from (
    select w.channel_id, min(w.at) as at, sum(w.n) as n, min(w.queue) as queue, min(w.channel) as channel,
        count(*) as wakes, sum(w.freed) as freed
    from (
        select channel_id, at, n, freed, queue, channel from `penstock_wake` force index (wake_order)
        where queue = $1 and at >= $3
            and at <= coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
        order by at limit $6 offset $7) w
    group by w.channel_id
) w left join `penstock_channel` c on c.id = w.channel_id
union all
(select 2, null, turn, 0, queue, null, 0, 0, null, null, null, null from `penstock_channel` force index (channel_ring)
where queue = $1
    and turn > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by turn limit 1)
union all
(select 3, null, at, 0, queue, null, 0, 0, null, null, null, null from `penstock_wake` force index (wake_order)
where queue = $1
    and at > coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
order by at limit 1)
union all
select 4, null, coalesce($8, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    0, null, null, 0, 0, null, null, null, null
