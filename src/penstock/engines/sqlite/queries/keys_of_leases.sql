-- $1: fence, $2: message ids. The keys of those that are held under it.
select c.queue, m.key, m.id, m.key_window
from json_each($2) j cross join "penstock_message" m indexed by "penstock_message_keyed"
cross join "penstock_lease" l cross join "penstock_channel" c
where m.id = j.value and m.key is not null and l.fence = $1 and l.message_id = m.id
    and c.id = m.channel_id
