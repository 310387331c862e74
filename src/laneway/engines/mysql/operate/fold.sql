-- name: fold_state
-- As the transaction sees it.
select settled, history_id, message_id, seen, stamp, seen_at, known from `laneway_fold`

-- name: lock_fold_state
-- The latest that is committed, whatever snapshot the transaction reads.
select settled, history_id, message_id, seen, stamp, seen_at, known from `laneway_fold` for update

-- name: save_fold_state
-- $1: stamp and $2: id of the last history entry counted, $3: last message id counted, $4: whether kind_count is
-- right, $5: as of when, $6: the last minute whose depth was noted; null if these have not changed.
update `laneway_fold` set settled = $1, history_id = $2, message_id = $3, known = $4,
    counted_at = coalesce($5, counted_at), noted = coalesce($6, noted)

-- name: last_message_id
-- The highest id that is known to have been published.
select greatest(coalesce((select max(id) from `laneway_message`), 0), coalesce((select max(id) from `laneway_dead`), 0),
    coalesce((select max(message_id) from `laneway_history`), 0))

-- name: save_fold_end
-- $1: last stamp, $2: highest message id, read after the stamps were set, $3: now. How far the next upkeep counts.
update `laneway_fold` set stamp = $1, seen = greatest(seen, $2), seen_at = $3

-- name: fold_end
-- $1 and $2: stamp and id of the last entry counted, $3: stamp up to which, $4: limit. The last of the next
-- entries.
select settled, id from (
    select settled, id from `laneway_history` force index (history_settled)
    where ((settled = $1 and id > $2) or settled > $1) and settled <= $3
    order by settled, id limit $4) h
order by settled desc, id desc limit 1

-- name: fold_history
-- $1 and $2: stamp and id after which, $3 and $4: stamp and id up to which; $5: bounds of the buckets.
-- Columns: minute of the end, minute of the claim, queue, kind, outcome, whether it made a dead letter, bucket
-- of the time waited and of the time run (a bound belongs to the bucket below it), number of entries.
select h.ended_at div 60000000, h.claimed_at div 60000000, h.queue, h.kind, h.outcome, h.dead,
    interval(coalesce(greatest(
        coalesce(h.started_at, h.claimed_at) - greatest(h.due, h.published_at), 0), 0) - 1, $5...),
    interval(coalesce(greatest(h.ended_at - coalesce(h.started_at, h.claimed_at), 0), 0) - 1, $5...), count(*)
from `laneway_history` h force index (history_settled)
where h.settled >= $1 and h.settled <= $3 and (h.settled > $1 or h.id > $2) and (h.settled < $3 or h.id <= $4)
    and h.outcome <> 'stale'
group by 1, 2, 3, 4, 5, 6, 7, 8

-- name: add_minutes
-- $1: rows.
insert into `laneway_minute` (span, at, queue, kind, partial,
    published, started, completed, retried, failed, expired, deferred, given_back, cancelled, lapsed,
    redriven, discarded, dead, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, r0, r1, r2, r3, r4,
    r5, r6, r7, r8, r9, r10, r11, r12)
values $1...
on duplicate key update partial = partial or values(partial),
    published = published + values(published), started = started + values(started), completed = completed +
    values(completed), retried = retried + values(retried), failed = failed + values(failed), expired =
    expired + values(expired), deferred = deferred + values(deferred), given_back = given_back +
    values(given_back), cancelled = cancelled + values(cancelled), lapsed = lapsed + values(lapsed),
    redriven = redriven + values(redriven), discarded = discarded + values(discarded), dead = dead +
    values(dead), w0 = w0 + values(w0), w1 = w1 + values(w1), w2 = w2 + values(w2), w3 = w3 + values(w3), w4
    = w4 + values(w4), w5 = w5 + values(w5), w6 = w6 + values(w6), w7 = w7 + values(w7), w8 = w8 +
    values(w8), w9 = w9 + values(w9), w10 = w10 + values(w10), w11 = w11 + values(w11), w12 = w12 +
    values(w12), r0 = r0 + values(r0), r1 = r1 + values(r1), r2 = r2 + values(r2), r3 = r3 + values(r3), r4
    = r4 + values(r4), r5 = r5 + values(r5), r6 = r6 + values(r6), r7 = r7 + values(r7), r8 = r8 +
    values(r8), r9 = r9 + values(r9), r10 = r10 + values(r10), r11 = r11 + values(r11), r12 = r12 +
    values(r12)

-- name: add_kind_counts
-- $1: rows.
insert into `laneway_kind_count` (queue, kind, live, dead) values $1...
on duplicate key update live = live + values(live), dead = dead + values(dead)

-- name: mark_partial
-- $1: span, $2: a minute. What happened since then was not fully kept.
update `laneway_minute` set partial = true where span = $1 and at >= $2 and not partial

-- name: note_depth
-- $1: span, $2: minute. A row for every kind that has messages, also if nothing happened to it.
insert into `laneway_minute` (span, at, queue, kind)
select $1, $2, k.queue, k.kind from `laneway_kind_count` k where k.live <> 0
on duplicate key update `laneway_minute`.span = `laneway_minute`.span

-- name: note_depth_of_all
-- $1: span, $2: minute.
update `laneway_minute` m left join `laneway_kind_count` k on k.queue = m.queue and k.kind = m.kind
set m.depth = coalesce(k.live, 0), m.oldest_due = null where m.span = $1 and m.at = $2

-- name: note_oldest
-- $1: span, $2: minute, $3: queue, $4: when its oldest waiting message was due.
update `laneway_minute` set oldest_due = $4 where span = $1 and at = $2 and queue = $3

-- name: delete_old_minutes
-- $1: span, $2: the first minute to keep, $3: limit.
delete from `laneway_minute` where span = $1 and at < $2 order by span, at limit $3

-- name: delete_empty_kind_counts
delete from `laneway_kind_count` where live = 0 and dead = 0

-- name: recount_size
-- $1 and $2: position in the history, $3: limit. Up to so many messages, dead letters, and history entries that
-- were not counted yet.
select (select count(*) from (select 1 from `laneway_message` limit $3) m),
    (select count(*) from (select 1 from `laneway_dead` limit $3) d),
    (select count(*) from (
        select 1 from `laneway_history` force index (history_settled) where settled is null limit $3) h),
    (select count(*) from (
        select 1 from `laneway_history` force index (history_settled)
        where (settled = $1 and id > $2) or settled > $1 limit $3) h)

-- name: recount_kinds
-- $1 and $2: position in the history, $3: last message id counted. What kind_count should hold: what is there,
-- without what history entries that are not counted yet say. One statement, so of one snapshot.
select t.queue, t.kind, sum(t.live), sum(t.dead) from (
    select id, queue, kind, 1 as live, 0 as dead from `laneway_message`
    union all
    select id, queue, kind, 0, 1 from `laneway_dead`
    union all
    select message_id, queue, kind, (outcome in ('completed', 'cancelled', 'lapsed')) + dead - (outcome = 'redriven'),
        (outcome in ('redriven', 'discarded')) - dead
    from `laneway_history` force index (history_settled)
    where (settled is null or (settled = $1 and id > $2) or settled > $1) and outcome <> 'stale'
) t
where t.id <= $3 and not exists (select 1 from `laneway_gap` g where t.id between g.first_id and g.last_id)
group by t.queue, t.kind

-- name: delete_kind_counts
delete from `laneway_kind_count`
