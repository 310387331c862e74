-- $1: what, $2: message ids, $3: now. One row for each listener that wants some of them.
insert into "penstock_mail" (listener_id, at, what, events)
select l.id, $3, $1, json_group_array(json_array(m.id, c.queue, c.name, m.kind))
from json_each($2) j cross join "penstock_message" m cross join "penstock_channel" c
cross join "penstock_listener" l
where m.id = j.value and c.id = m.channel_id and l.until > $3
    and (select coalesce(max(number), 0) from "penstock_mail") - l.read_to < 100000
    and (l.what is null or $1 in (select value from json_each(l.what)))
    and (l.queues is null or c.queue in (select value from json_each(l.queues)))
    and (l.channels is null or c.name in (select value from json_each(l.channels)))
    and (l.kinds is null or m.kind in (select value from json_each(l.kinds)))
group by l.id
