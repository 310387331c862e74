-- $1: ids. One row each, in order: the outcome, null if the message has not ended. All is read in one
-- snapshot, so a message that moves is seen in one place.
select x.id,
    case when m.id is not null then null when d.id is not null then 'dead' else coalesce(h.outcome, 'unknown') end,
    coalesce(d.died_at, h.ended_at), coalesce(d.reason, h.reason),
    coalesce(d.error_type, h.error_type), coalesce(d.error, h.error)
from unnest(CAST($1 AS bigint[])) with ordinality x(id, ordinal)
left join lateral (select k.id from "penstock".message_v1 k where k.id = x.id offset 0) m on true
left join lateral (
    select k.id, k.died_at, k.reason, k.error_type, k.error from "penstock".dead_letter_v1 k
    where k.id = x.id and m.id is null offset 0) d on true
left join lateral (
    select k.outcome, k.ended_at, k.reason, k.error_type, k.error from "penstock".history_v1 k
    where k.message_id = x.id and k.terminal and m.id is null and d.id is null
    order by k.id desc limit 1) h on true
order by x.ordinal
