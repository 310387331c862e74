-- $1: now. The clock, how much the server takes at once, the step of its ids, and whether any
-- channel refuses anything and anybody listens.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    @@max_allowed_packet, @@auto_increment_increment,
    exists (select 1 from `penstock_channel` where gated = 1),
    exists (select 1 from `penstock_listener` where until > coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))))
