-- $1: owned channels, $2: from which time on, $3: now, $4: how many. Those that may have to start
-- first are all read, however many lie before them.
select w.channel_id, w.priority, group_concat(w.id), sum(w.n), sum(w.freed),
    min(case when w.n > 0 then w.due end), min(case when w.n > 0 then w.message_id end)
from (
    select id, channel_id, priority, due, message_id, n, freed
    from `penstock_wake` force index (wake_channel)
    where channel_id in ($1...) and ahead = 1 and at >= $2 and at <= $3
    union all
    select * from (
        select id, channel_id, priority, due, message_id, n, freed
        from `penstock_wake` force index (wake_channel)
        where channel_id in ($1...) and ahead = 0 and at >= $2 and at <= $3 limit $4) plain
) w
group by w.channel_id, w.priority
