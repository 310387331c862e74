-- $1: ids of dead letters that are about to go.
insert into "penstock_dead_count" (queue, channel, n)
select queue, channel, -count(*) from "penstock_dead"
where id in (select value from json_each($1)) group by queue, channel
on conflict (queue, channel) do update set n = n + excluded.n
