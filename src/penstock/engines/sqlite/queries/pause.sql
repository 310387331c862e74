-- $1: channel, $2: paused, $3: closing (null leaves it).
update "penstock_channel" set paused = $2, closing = coalesce($3, closing) where id = $1
