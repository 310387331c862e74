-- $1: now.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    history, history_days, backoff_first, backoff_most
from `penstock_setting`
