-- $1: channel ids, $2: now. What another claim holds is left out.
select id, queue, name, weight, concurrency, rate, burst, paused, turn, n, leased, tat, credit, skips, places,
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
from `penstock_channel` force index (primary) where id in ($1...) for update skip locked
