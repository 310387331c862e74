-- $1: queues, null for all. When the next schedule has to be looked at.
select min(look_at) from "penstock_schedule"
where look_at is not null and ($1 is null or queue in (select value from json_each($1)))
