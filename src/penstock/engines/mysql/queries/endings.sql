-- $1: ids. One row each: the outcome, null if the message has not ended. One snapshot, so a message
-- that moves is seen in one place.
select x.id,
    case when m.id is not null then null when d.id is not null then 'dead' else coalesce(h.outcome, 'unknown') end,
    coalesce(d.died_at, h.ended_at), coalesce(d.reason, h.reason),
    coalesce(d.error_type, h.error_type), coalesce(d.error, h.error)
from $1:ids x
left join `penstock_message` m on m.id = x.id
left join `penstock_dead` d on d.id = x.id and m.id is null
left join `penstock_history` h on m.id is null and d.id is null and h.id = (
    select max(k.id) from `penstock_history` k where k.message_id = x.id and k.terminal)
