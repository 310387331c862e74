-- $1: how many, $2: channel.
update `penstock_channel` force index (primary) set leased = leased + $1 where id = $2
