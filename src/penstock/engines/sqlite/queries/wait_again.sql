-- $1: message ids.
insert into "penstock_waiting" (channel_id, priority, due, message_id, expires_at)
select m.channel_id, m.priority, m.due, m.id, m.expires_at
from json_each($1) j cross join "penstock_message" m where m.id = j.value
