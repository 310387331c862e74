-- $1: now, $2: for how long, $3..$6: the columns of EventFilter as JSON, null for all.
insert into `penstock_listener` (until, read_to, what, queues, channels, kinds)
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) + $2,
    coalesce((select max(number) from `penstock_mail`), 0), $3, $4, $5, $6
