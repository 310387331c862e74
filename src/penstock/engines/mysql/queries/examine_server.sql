-- The server's settings that decide what can be lost, and what holds it up.
select version(), @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@log_bin, @@innodb_doublewrite,
    @@read_only, @@max_allowed_packet, @@binlog_format
