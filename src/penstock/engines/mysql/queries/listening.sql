-- $1: now, $2: listener. No row if it is gone; whether it still gets mail, how far it is behind, the time.
select l.until > c.now, coalesce((select max(number) from `penstock_mail`), 0) - l.read_to, c.now
from (select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) c join `penstock_listener` l on l.id = $2
