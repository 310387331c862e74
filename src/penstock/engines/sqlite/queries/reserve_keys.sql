-- $1: rows of queue, key and message id. A key whose time has passed is taken over.
insert into "penstock_dedupe" (queue, key, message_id)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
from json_each($1) where true
on conflict (queue, key) do update set message_id = excluded.message_id, expires_at = null
