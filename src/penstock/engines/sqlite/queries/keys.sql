-- $1: rows of queue and key, $2: now. Those that live.
select d.queue, d.key, d.message_id
from json_each($1) j cross join "penstock_dedupe" d
where d.queue = json_extract(j.value, '$[0]') and d.key = json_extract(j.value, '$[1]')
    and (d.expires_at is null or d.expires_at > $2)
