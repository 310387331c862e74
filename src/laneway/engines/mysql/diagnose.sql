-- name: waiting_queue
-- $1: queue, $2: now. Since when it has work that could start, and what time it is; no row while it is paused.
select $1 as queue,
    least(coalesce((select c.turn from `laneway_channel` c force index (channel_ring)
            where c.queue = $1 and c.turn <= t.now order by c.turn limit 1), 9223372036854775807),
        coalesce((select w.at from `laneway_wake` w force index (wake_order)
            where w.queue = $1 and w.at <= t.now and w.n > 0 order by w.at limit 1), 9223372036854775807),
        coalesce((select w.at from `laneway_kind_wake` w force index (kind_wake_all)
            where w.queue = $1 and w.at <= t.now order by w.at limit 1), 9223372036854775807)),
    t.now
from (select coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) as now) t
where not exists (select 1 from `laneway_pause` p where p.queue = $1 and p.kind is null
    and (p.until is null or p.until > t.now))

-- name: last_claims
-- When a message of each queue was last claimed, of the 200 leases that end last.
select m.queue, max(l.claimed_at)
from (select message_id, claimed_at from `laneway_lease` force index (lease_until) where fence > 0
    order by until desc limit 200) l
straight_join `laneway_message` m force index (primary) on m.id = l.message_id
group by m.queue

-- name: kinds_of_wakes
-- $1: queue, $2: now. Kinds of the messages of its oldest 100 wakes that were published a minute ago or earlier.
select distinct m.kind
from (
    (select message_id from `laneway_wake` force index (wake_order)
    where queue = $1 and at <= $2 + 60000000 order by at limit 100)
    union all
    (select message_id from `laneway_kind_wake` force index (kind_wake_all)
    where queue = $1 and at <= $2 + 60000000 order by at limit 100)) w
straight_join `laneway_message` m force index (primary) on m.id = w.message_id
where m.published_at < $2 - 60000000
    and not exists (select 1 from `laneway_lease` l where l.message_id = m.id)
    and not exists (select 1 from `laneway_pause` p where p.queue = $1 and p.kind = m.kind
        and (p.until is null or p.until > $2))

-- name: kinds_of_lanes
-- $1: queue, $2: now. Kinds whose messages claims by kind have found and left for a minute, of the first 100.
with recursive kind (lane, number) as (
    select min(l.lane), 1 from `laneway_lane` l force index (lane_ring) where l.queue = $1 and l.lane >= '='
    union all
    select (select min(l.lane) from `laneway_lane` l force index (lane_ring) where l.queue = $1 and l.lane > k.lane), k.number + 1
    from kind k where k.lane is not null and k.number < 100)
select substring(k.lane, 2) from kind k
where k.lane is not null and exists (
        select 1 from `laneway_lane` l force index (lane_ring)
        straight_join `laneway_kind_message` x force index (primary) on x.channel_id = l.channel_id and x.lane = l.lane
        straight_join `laneway_message` m force index (primary) on m.id = x.message_id and m.due = x.due
        where l.queue = $1 and l.lane = k.lane and l.turn <= $2 and m.published_at < $2 - 60000000 limit 1)
    and not exists (select 1 from `laneway_pause` p where p.queue = $1 and p.kind = substring(k.lane, 2)
        and (p.until is null or p.until > $2))

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
