-- $1: message ids, $2: now. What is known of messages whose leases were lost; the first row is only
-- for the clock and the setting.
select null, 0, '', '', '', coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `penstock_setting` s)
union all
select id, attempt, queue, channel, kind, null, null from `penstock_message` where id in ($1...)
