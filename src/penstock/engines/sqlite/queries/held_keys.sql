-- $1: message ids. The keys that they hold.
select c.queue, m.key, m.id, m.key_window
from json_each($1) j cross join "penstock_message" m indexed by "penstock_message_keyed"
cross join "penstock_channel" c
where m.id = j.value and m.key is not null and c.id = m.channel_id
