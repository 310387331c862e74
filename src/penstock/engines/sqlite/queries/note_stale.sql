-- $1: rows of message id and fence of those who came too late, $2: with which verb, $3: now.
insert into "penstock_history" (
    message_id, fence, attempt, ended_at, terminal, dead, queue, channel, kind, outcome, reason)
select json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), coalesce(m.attempt, 0), $3, 0, 0,
    coalesce(c.queue, ''), coalesce(c.name, ''), coalesce(m.kind, ''), 'stale', $2
from "penstock_state" s cross join json_each($1) j
left join "penstock_message" m on m.id = json_extract(j.value, '$[0]')
left join "penstock_channel" c on c.id = m.channel_id
where s.history <> 'none'
