-- name: diagnose_server
-- The server's settings that decide whether it accepts our writes and what a crash can lose.
select version(), @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@log_bin, @@innodb_doublewrite,
    @@read_only, @@max_allowed_packet, @@binlog_format

-- name: diagnose_leases
-- $1: how long ago a lease must have run out, $2: now. Upkeep takes expired leases back within seconds.
select count(*), min(until) from (
    select until from `laneway_lease` force index (lease_until)
    where until < coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) - $1
    order by until limit 1000) l
