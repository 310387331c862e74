-- $1: ids. Those that are dead letters, with their channels, in order.
select d.id, d.queue, d.channel from json_each($1) j cross join "penstock_dead" d
where d.id = j.value order by d.id
