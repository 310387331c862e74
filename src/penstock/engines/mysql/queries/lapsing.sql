-- $1: now, $2: how many. Messages whose time has passed and that no lease holds, and entries of
-- messages that ended otherwise.
select e.message_id, m.id, m.channel_id, m.queue, m.channel
from `penstock_expiry` e force index (expiry_order)
left join `penstock_message` m on m.id = e.message_id and m.expires_at = e.expires_at
where e.expires_at <= $1
    and not exists (select 1 from `penstock_lease` l where l.message_id = e.message_id)
order by e.expires_at limit $2
