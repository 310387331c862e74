-- $1: channels.
select c.id from $1:keys x
straight_join `penstock_channel` c force index (primary) on c.id = unhex(x.id) and c.closing
for update skip locked
