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
-- messages that have ended otherwise (it is null). It reads past those that are leased: no more than workers hold.
select e.message_id, m.id, m.channel_id, m.queue, m.channel
from (
    select e.message_id, e.expires_at from `laneway_expiry` e force index (expiry_order)
    where e.expires_at <= $1
        and (select l.message_id from `laneway_lease` l where l.message_id = e.message_id) is null
    order by e.expires_at limit $2
) e
left join `laneway_message` m force index (primary) on m.id = e.message_id and m.expires_at = e.expires_at

-- name: lock_free_keys
-- $1: key ids in order. Those that nobody else has locked.
select t.id from $1:keys x straight_join `laneway_dedupe` t force index (primary) on t.id = unhex(x.id)
for update skip locked

-- name: still_lapsed
-- $1: message ids, $2: now. We have locked their channels.
select m.id from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
where m.expires_at <= $2 order by m.id

-- name: delete_expiries
-- $1: message ids.
delete t from $1:ids x straight_join `laneway_expiry` t force index (primary) on t.message_id = x.id

-- name: stray_leases
-- $1: limit. The last column: whether the lease still exists.
select s.message_id, s.fence, s.channel_id, s.queue, s.channel, l.message_id is not null
from `laneway_stray` s left join `laneway_lease` l on l.message_id = s.message_id and l.fence = s.fence
limit $1

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
-- $1: limit. Channels that are being removed and seem empty. It reads past those that are not.
select c.id from `laneway_channel` c force index (channel_gate)
where c.gated = 1 and c.closing = 1
    and (select m.id from `laneway_message` m force index (message_order) where m.channel_id = c.id limit 1) is null
limit $1

-- name: lock_removed_channels
-- $1: channel ids in order.
select c.id from $1:keys x
straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id) and c.closing
for update skip locked

-- name: channel_wakes
-- $1: channel ids, locked by us, $2: limit. In the order of channels.
select id, channel_id from `laneway_wake` force index (wake_channel)
where channel_id in ($1...) order by channel_id limit $2

-- name: channel_kind_wakes
-- $1: channel ids, locked by us, $2: limit. In the order of channels.
select id, channel_id from `laneway_kind_wake` force index (kind_wake_channel)
where channel_id in ($1...) order by channel_id limit $2

-- name: delete_lanes
-- $1: channel ids, locked by us.
delete l from $1:keys x straight_join `laneway_lane` l force index (primary) on l.channel_id = unhex(x.id)

-- name: delete_times
-- $1: channel ids, locked by us.
delete t from $1:keys x straight_join `laneway_fair_channel` t force index (primary) on t.channel_id = unhex(x.id)

-- name: channels_in_use
-- $1: channel ids, locked by us. Those that have messages or strays after all.
select c.id from $1:keys x straight_join `laneway_channel` c force index (primary) on c.id = unhex(x.id)
where (select m.id from `laneway_message` m force index (message_order) where m.channel_id = c.id limit 1) is not null
    or (select s.fence from `laneway_stray` s force index (stray_channel) where s.channel_id = c.id limit 1) is not null

-- name: delete_channels
-- $1: channel ids, locked by us.
delete t from $1:keys x straight_join `laneway_channel` t force index (primary) on t.id = unhex(x.id)

-- name: orphaned_mail
-- $1: now, $2: limit. Mail of listeners that are gone. It reads past those without any, until they are deleted.
select m.number from `laneway_listener` l force index (listener_until)
straight_join `laneway_mail` m force index (mail_order) on m.listener_id = l.id
where l.until <= $1 limit $2

-- name: expired_listeners
-- $1: a time, $2: limit. Listeners that had expired by then.
select id from `laneway_listener` force index (listener_until) where until <= $1 limit $2

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

-- name: next_lake
-- $1: lake. The one after it.
select lake from `laneway_lake_commit` force index (primary) where lake > $1 order by lake limit 1

-- name: lake_sure
-- $1: lake. Before which stamp it is certain to have the history.
select coalesce((
    select min(o.stamp) from (
        (select from_xid as stamp from `laneway_lake_commit` force index (lake_commit_open)
        where lake = $1 and state = 'planned' order by from_xid limit 1)
        union all
        (select from_xid from `laneway_lake_commit` force index (lake_commit_open)
        where lake = $1 and state = 'written' order by from_xid limit 1)) o), (
    select to_xid from `laneway_lake_commit` force index (primary) where lake = $1 order by batch desc limit 1))

-- name: oldest_history
-- $1: limit, $2: when the oldest minute begins, $3: before which stamp every lake in use is certain to have the history, null
-- if there is none. Ids follow the time, except for entries of long transactions. The last column: whether the lakes have
-- the entry (if a batch ends within a stamp, none of that stamp is certain), and it was counted by minute or is older than
-- minutes.
select h.id, h.ended_at, coalesce(h.settled < $3, $3 is null)
    and (h.ended_at < $2 or h.settled < f.settled or (h.settled = f.settled and h.id <= f.history_id))
from (select id, ended_at, settled from `laneway_history` force index (primary) order by id limit $1) h
cross join `laneway_fold` f
order by h.id

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
    exists (select 1 from `laneway_flow` force index (flow_expiry) where expires_at <= coalesce($1, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))),
    exists (select 1 from `laneway_flow_undecided`)
from `laneway_setting`
