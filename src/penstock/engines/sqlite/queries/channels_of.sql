-- $1: rows of queue and name. Those that exist, with what a publisher must know.
select c.queue, c.name, c.id, c.closing,
    case when c.backlog is not null then max(c.backlog - c.waiting - c.leased, 0) end as room
from json_each($1) j cross join "penstock_channel" c
where c.queue = json_extract(j.value, '$[0]') and c.name = json_extract(j.value, '$[1]')
