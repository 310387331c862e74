-- Part of the script, the last of each migration; $1 and $2 are replaced by literals.
insert ignore into `penstock_migration` (number, name, applied_at)
values ($1, $2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
