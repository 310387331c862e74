-- As before, with the wakes of messages that are found by their kinds.
create or replace view `laneway_stats` as
select p.queue, p.channel, greatest(sum(p.waiting), 0) as waiting, greatest(sum(p.scheduled), 0) as scheduled,
    sum(p.leased) as leased, sum(p.dead) as dead, case when sum(p.waiting) > 0 then min(p.oldest) end as oldest_due
from (
    select c.queue, c.name as channel, c.n as waiting, 0 as scheduled, 0 as leased, 0 as dead, c.oldest
    from `laneway_channel` c where c.n <> 0
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_wake` w
    union all
    select w.queue, w.channel,
        case when w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        case when w.due > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.n else 0 end,
        0, 0,
        case when w.n > 0 and w.due <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then w.due end
    from `laneway_kind_wake` w
    union all
    select c.queue, c.name, 0, 0, l.n, 0, null
    from (select k.channel_id, count(*) as n from `laneway_lease` k group by k.channel_id) l
    join `laneway_channel` c on c.id = l.channel_id
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_count` d
    union all
    select d.queue, d.channel, 0, 0, 0, d.n, null from `laneway_dead_sum` d
) p
group by p.queue, p.channel
having sum(p.waiting) <> 0 or sum(p.scheduled) <> 0 or sum(p.leased) <> 0 or sum(p.dead) <> 0;
