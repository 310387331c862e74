-- $1: how many. Channels that are being removed and seem empty.
select c.id from `penstock_channel` c force index (channel_gate)
where c.gated = 1 and c.closing
    and not exists (select 1 from `penstock_message` m where m.channel_id = c.id)
limit $1
