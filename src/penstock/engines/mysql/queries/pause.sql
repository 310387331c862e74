-- $1: paused or resumed, $2: channels, owned.
update `penstock_channel` set paused = $1 where id in ($2...)
