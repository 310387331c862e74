-- name: expired_leases
-- $1: from which time on, $2: now, $3: limit. Leases that ran out.
select message_id, fence, until from `laneway_lease` force index (lease_until)
where until >= $1 and until <= $2 order by until limit $3

-- name: lock_expired_leases
-- $1: (message id, fence) in order, $2: now. As lock_leases_and_messages, but skips leases that their holders
-- are settling.
select l.message_id, l.fence, l.channel_id, l.counted, m.queue, m.channel, m.`key`, m.key_window,
    coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))), (select s.history from `laneway_setting` s),
    l.claimed_at, l.worker, m.kind, m.priority, m.due, m.published_at, m.first_published_at, m.attempt,
    m.spent, m.max_attempts, octet_length(m.payload), m.flow_id
from $1:pairs x
straight_join `laneway_lease` l force index (primary) on l.message_id = x.id and l.fence = x.fence and l.until <= $2
straight_join `laneway_message` m force index (primary) on m.id = l.message_id
for update skip locked

-- name: lapsed_messages
-- $1: now, $2: limit. Expired messages that are not leased (the second column is their id), and expiries of
-- messages that have ended otherwise (it is null).
select e.message_id, m.id, m.channel_id, m.queue, m.channel
from `laneway_expiry` e force index (expiry_order)
left join `laneway_message` m on m.id = e.message_id and m.expires_at = e.expires_at
where e.expires_at <= $1
    and not exists (select 1 from `laneway_lease` l where l.message_id = e.message_id)
order by e.expires_at limit $2

-- name: lock_free_keys
-- $1: key ids in order. Those that nobody else has locked.
select t.id from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update skip locked

-- name: still_lapsed
-- $1: message ids, $2: now. We have locked their channels.
select id from `laneway_message` where id in ($1...) and expires_at <= $2 order by id

-- name: delete_expiries
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_expiry` t force index (primary) on t.message_id = x.id

-- name: stray_leases
-- The last column: whether the lease still exists.
select s.message_id, s.fence, s.channel_id, s.queue, s.channel, l.message_id is not null
from `laneway_stray` s left join `laneway_lease` l on l.message_id = s.message_id and l.fence = s.fence
limit 1000

-- name: delete_stray_leases
-- $1: (message id, fence).
delete t from $1:pairs x
straight_join `laneway_stray` t force index (primary) on t.message_id = x.id and t.fence = x.fence

-- name: expired_keys
-- $1: now, $2: limit.
select id from `laneway_dedupe` force index (dedupe_expiry)
where expires_at <= $1 order by expires_at limit $2

-- name: lock_expired_keys
-- $1: key ids in order, $2: now.
select t.id from $1:keys x
straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id) and t.expires_at <= $2
for update skip locked

-- name: removed_channels
-- $1: limit. Channels that are being removed and seem empty.
select c.id from `laneway_channel` c force index (channel_gate)
where c.gated = 1 and c.closing
    and not exists (select 1 from `laneway_message` m where m.channel_id = c.id)
limit $1

-- name: lock_removed_channels
-- $1: channel ids in order.
select c.id from $1:keys x
straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id) and c.closing
for update skip locked

-- name: channel_wakes
-- $1: channel ids, locked by us.
select id, channel_id from `laneway_wake` where channel_id in ($1...)

-- name: channel_kind_wakes
-- $1: channel ids, locked by us.
select id, channel_id from `laneway_kind_wake` where channel_id in ($1...)

-- name: delete_lanes
-- $1: channel ids, locked by us.
delete l from $1:keys x straight_join `laneway_lane` l force index (primary) on l.channel_id = unhex(x.id)

-- name: delete_times
-- $1: channel ids, locked by us.
delete t from $1:keys x straight_join `laneway_fair_channel` t force index (primary) on t.channel_id = unhex(x.id)

-- name: channels_in_use
-- $1: channel ids, locked by us. Those that have messages or strays after all.
select c.id from `laneway_channel` c
where c.id in ($1...) and (
    exists (select 1 from `laneway_message` m where m.channel_id = c.id)
    or exists (select 1 from `laneway_stray` s where s.channel_id = c.id))

-- name: delete_channels
-- $1: channel ids, locked by us.
delete t from $1:keys x straight_join `laneway_channel` t force index (primary) on t.id = unhex(x.id)

-- name: orphaned_mail
-- $1: now, $2: limit. Mail of listeners that are gone.
select m.number from `laneway_listener` l force index (listener_until)
join `laneway_mail` m force index (mail_order) on m.listener_id = l.id
where l.until <= $1 limit $2

-- name: expired_listeners
-- $1: a time. Listeners that had expired by then.
select id from `laneway_listener` force index (listener_until) where until <= $1

-- name: delete_listeners
-- $1: ids.
delete t from $1:ids x straight_join `laneway_listener` t force index (primary) on t.id = x.id

-- name: cleanup_needed
-- $1: limit. Up to so many dead-letter counts and fences, and when the oldest history entry ended.
select (select count(*) from (select 1 from `laneway_dead_count` limit $1) d),
    (select count(*) from (select 1 from `laneway_fence` limit $1) f),
    (select ended_at from `laneway_history` order by id limit 1)

-- name: read_dead_counts
-- $1: limit.
select id, queue, channel, n from `laneway_dead_count` order by id limit $1

-- name: delete_dead_counts
-- $1: ids.
delete t from $1:ids x straight_join `laneway_dead_count` t force index (primary) on t.id = x.id

-- name: add_dead_sums
-- $1: rows.
insert into `laneway_dead_sum` (channel_id, queue, channel, n) values $1...
on duplicate key update n = n + values(n)

-- name: add_dead_queues
-- $1: rows.
insert into `laneway_dead_queue` (queue, n) values $1...
on duplicate key update n = n + values(n)

-- name: delete_empty_dead_sums
-- $1: channel ids.
delete t from $1:keys x straight_join `laneway_dead_sum` t force index (primary)
    on t.channel_id = unhex(x.id) and t.n = 0

-- name: read_fences
-- $1: limit. The auto-increment counter does not need the rows.
select id from `laneway_fence` order by id limit $1

-- name: delete_fences
-- $1: ids.
delete t from $1:ids x straight_join `laneway_fence` t force index (primary) on t.id = x.id

-- name: oldest_history
-- $1: limit, $2: when the oldest minute begins. Ids follow the time, except for entries of long transactions. The
-- last column: whether every lake in use is certain to have the entry (if a batch ends within a stamp, none of that
-- stamp is certain), and it was counted by minute or is older than minutes.
select h.id, h.ended_at, coalesce(h.settled < s.stamp, s.stamp is null)
    and (h.ended_at < $2 or h.settled < f.settled or (h.settled = f.settled and h.id <= f.history_id))
from `laneway_history` h
cross join `laneway_lake_sure` s
cross join `laneway_fold` f
order by h.id limit $1

-- name: delete_history
-- $1: ids.
delete t from $1:ids x straight_join `laneway_history` t force index (primary) on t.id = x.id

-- name: lock_task
-- $1: name.
select n from `laneway_turnstile` where name = $1 for update

-- name: unstamped_history
-- $1: limit. A plain read: it does not wait for rows of open transactions.
select id from `laneway_history` force index (history_settled) where settled is null order by id limit $1

-- name: stamp_history
-- $1: ids, $2: stamp.
update $1:ids x straight_join `laneway_history` h force index (primary) on h.id = x.id set h.settled = $2

-- name: save_last_stamp
-- $1: stamp, $2: name of the task.
update `laneway_turnstile` force index (primary) set n = $1 where name = $2

-- name: try_lock_task
-- $1: name. No row if another session is doing it.
select n from `laneway_turnstile` where name = $1 for update skip locked

-- name: upkeep_settings
-- $1: now. The last columns: whether counts of flows have changed, whether some are no longer kept, and whether ends of
-- nodes have left something.
select coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    history, history_days, backoff_initial, backoff_max,
    exists (select 1 from `laneway_flow_count`),
    exists (select 1 from `laneway_flow` where expires_at <= coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))),
    exists (select 1 from `laneway_flow_undecided`)
from `laneway_setting`
