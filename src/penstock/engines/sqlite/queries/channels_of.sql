-- $1: queue, $2: names. Those that exist, with what a publisher must know.
select name, id, closing,
    case when backlog is not null then max(backlog - waiting - leased, 0) end as room
from "penstock_channel" where queue = $1 and name in (select value from json_each($2))
