-- $1: rows of message id and fence. Those that are held.
select l.message_id, l.fence, l.until
from json_each($1) j cross join "penstock_lease" l
where l.fence = json_extract(j.value, '$[1]') and l.message_id = json_extract(j.value, '$[0]')
