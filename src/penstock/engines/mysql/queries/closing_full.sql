-- $1: channels, owned. Those that hold something after all.
select c.id from `penstock_channel` c
where c.id in ($1...) and (
    exists (select 1 from `penstock_message` m where m.channel_id = c.id)
    or exists (select 1 from `penstock_stray` s where s.channel_id = c.id))
