-- $1: message ids. Those that no lease holds, by their place.
select w.channel_id, w.priority, w.due, w.message_id
from json_each($1) j cross join "penstock_message" m cross join "penstock_waiting" w
where m.id = j.value and w.channel_id = m.channel_id and w.priority = m.priority and w.due = m.due
    and w.message_id = m.id
group by m.id
