-- $1: ids of dead letters, $2: outcome, $3: terminal, $4: now.
insert into "penstock_history" (
    message_id, attempt, first_published_at, published_at, ended_at, payload_size, terminal, dead,
    priority, queue, channel, kind, outcome, reason, error_type)
select d.id, d.attempt, d.first_published_at, d.published_at, $4, length(d.payload), $3, 0,
    d.priority, d.queue, d.channel, d.kind, $2, d.reason, d.error_type
from "penstock_state" s cross join "penstock_dead" d
where s.history <> 'none' and d.id in (select value from json_each($1))
