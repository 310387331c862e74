-- $1: channel, $2: its bands, $3: now. The first message of each priority that can still start, and when.
select p.value as priority, (
    select w.due from "penstock_waiting" w
    where w.channel_id = $1 and w.priority = p.value and (w.expires_at is null or w.expires_at > $3)
    order by w.due limit 1) as due
from json_each('[0,1,2,3,4,5,6,7,8,9]') p
where ($2 >> p.value) & 1
