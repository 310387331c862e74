-- $1: now. When one is due that is due, and the next one after that.
select (select min(look_at) from `penstock_schedule` where look_at <= $1),
    (select min(look_at) from `penstock_schedule` where look_at > $1)
