-- $1: now, $2: listener.
update `penstock_listener` set until = coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
where id = $2
