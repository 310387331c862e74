-- $1: what, $2: ids of dead letters, $3: now. One row for each listener that wants some of them.
insert into "penstock_mail" (listener_id, at, what, events)
select l.id, $3, $1, json_group_array(json_array(d.id, d.queue, d.channel, d.kind))
from json_each($2) j cross join "penstock_dead" d cross join "penstock_listener" l
where d.id = j.value and l.until > $3
    and (select coalesce(max(number), 0) from "penstock_mail") - l.read_to < 100000
    and (l.what is null or $1 in (select value from json_each(l.what)))
    and (l.queues is null or d.queue in (select value from json_each(l.queues)))
    and (l.channels is null or d.channel in (select value from json_each(l.channels)))
    and (l.kinds is null or d.kind in (select value from json_each(l.kinds)))
group by l.id
