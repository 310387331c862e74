-- $1: channels. Leases of theirs that were claimed without being charged.
select l.message_id, l.fence, l.channel_id, c.queue, c.name
from `penstock_lease` l join `penstock_channel` c on c.id = l.channel_id
where l.channel_id in ($1...) and not l.counted
    and not exists (select 1 from `penstock_stray` s where s.message_id = l.message_id and s.fence = l.fence)
order by l.message_id
