-- $1: ids. One row each, in order: the outcome, null if the message has not ended.
select j.value,
    case when m.id is not null then null when d.id is not null then 'dead' else coalesce(h.outcome, 'unknown') end,
    coalesce(d.died_at, h.ended_at), coalesce(d.reason, h.reason),
    coalesce(d.error_type, h.error_type), coalesce(d.error, h.error)
from json_each($1) j
left join "penstock_message" m on m.id = j.value
left join "penstock_dead" d on d.id = j.value and m.id is null
left join "penstock_history" h on m.id is null and d.id is null and h.id = (
    select max(k.id) from "penstock_history" k where k.message_id = j.value and k.terminal)
order by j.key
