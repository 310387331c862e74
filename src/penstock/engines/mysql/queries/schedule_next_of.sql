-- $1: now, $2: queues. As schedule_next.sql, of some queues only.
select (select min(look_at) from `penstock_schedule` where look_at <= $1 and queue in ($2...)),
    (select min(look_at) from `penstock_schedule` where look_at > $1 and queue in ($2...))
