-- $1: now, $2: what. Those who listen to it, and the time.
select l.id, c.now, l.queues, l.channels, l.kinds
from (select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) c
join `penstock_listener` l force index (listener_until) on l.until > c.now
where (l.what is null or json_contains(l.what, json_quote(convert($2 using utf8mb4))))
    and coalesce((select max(number) from `penstock_mail`), 0) - l.read_to < 100000
