-- name: id_step
select @@auto_increment_increment

-- name: published_messages
-- $1: id after which, $2: id up to which. Every message leaves one row or several in these tables, all with the
-- time at which it was first published.
select p.at, p.queue, p.kind, count(*) from (
    select id, first_published_at div 60000000 as at, queue, kind from `laneway_message` force index (primary)
    where id > $1 and id <= $2
    union
    select id, first_published_at div 60000000, queue, kind from `laneway_dead` force index (primary)
    where id > $1 and id <= $2
    union
    select message_id, first_published_at div 60000000, queue, kind from `laneway_history` force index (history_message)
    where message_id > $1 and message_id <= $2 and first_published_at is not null
) p group by p.at, p.queue, p.kind

-- name: published_and_missing
-- As published_messages, and in the same snapshot the ranges of ids that are in none of the tables: rows without a
-- queue, first and last id. $3: the step of ids; what it leaves out is not missing.
with p as (
    select id, first_published_at div 60000000 as at, queue, kind from `laneway_message` force index (primary)
    where id > $1 and id <= $2
    union
    select id, first_published_at div 60000000, queue, kind from `laneway_dead` force index (primary)
    where id > $1 and id <= $2
    union
    select message_id, first_published_at div 60000000, queue, kind from `laneway_history` force index (history_message)
    where message_id > $1 and message_id <= $2 and first_published_at is not null
)
select at, queue, kind, count(*) from p group by at, queue, kind
union all
select before_it + 1, null, null, id - 1 from (
    select p.id, coalesce(lag(p.id) over (order by p.id), $1) as before_it
    from (select id from p union all select $2 + 1) p
) p where id - before_it > $3

-- name: next_message_id
-- $1: id. The next one that a message has or had, null if there is none.
select min(id) from (
    select min(id) as id from `laneway_message` where id > $1
    union all
    select min(id) from `laneway_dead` where id > $1
    union all
    select min(message_id) from `laneway_history` where message_id > $1) m

-- name: add_gaps
-- $1: rows.
insert into `laneway_gap` (first_id, last_id, noted_at, check_at) values $1...

-- name: gaps_to_check
-- $1: now, $2: limit, $3: limit of rows of nodes of flows that were released since the last look: those have no last id,
-- and how many nodes they have.
(select first_id, last_id, noted_at, check_at from `laneway_gap` force index (gap_check)
where check_at <= $1 order by check_at limit $2)
union all
(select number, 0, n, 0 from `laneway_flow_released` force index (primary) order by number limit $3)

-- name: released_nodes
-- $1: numbers of rows of released nodes.
select r.ids from $1:ids x straight_join `laneway_flow_released` r force index (primary) on r.number = x.id

-- name: published_nodes
-- $1: ids. As published_messages, of these.
select m.id, m.first_published_at div 60000000, m.queue, m.kind
from $1:ids x straight_join `laneway_message` m force index (primary) on m.id = x.id
union
select d.id, d.first_published_at div 60000000, d.queue, d.kind
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
union
select h.message_id, h.first_published_at div 60000000, h.queue, h.kind
from $1:ids x straight_join `laneway_history` h force index (history_message) on h.message_id = x.id
where h.first_published_at is not null

-- name: gap_before
-- $1: message id. The gap that it is in, if any, or one before it.
select * from (
    select first_id, last_id, noted_at, check_at from `laneway_gap` force index (primary)
    where first_id <= $1 order by first_id desc limit 1) g

-- name: delete_released_nodes
-- $1: numbers.
delete t from $1:ids x straight_join `laneway_flow_released` t force index (primary) on t.number = x.id

-- name: published_in_gap
-- $1: first and $2: last id of the gap, $3: limit of each table.
select * from (
    (select id, first_published_at div 60000000 as at, queue, kind from `laneway_message` force index (primary)
    where id between $1 and $2 order by id limit $3)
    union
    (select id, first_published_at div 60000000, queue, kind from `laneway_dead` force index (primary)
    where id between $1 and $2 order by id limit $3)
    union
    (select distinct message_id, first_published_at div 60000000, queue, kind
    from `laneway_history` force index (history_message)
    where message_id between $1 and $2 and first_published_at is not null limit $3)) g

-- name: delete_gaps
-- $1: first ids.
delete t from $1:ids x straight_join `laneway_gap` t force index (primary) on t.first_id = x.id

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
-- $1 and $2: position in the history, $3: limit. Up to so many messages, dead letters, history entries that
-- were not counted yet, and gaps.
select (select count(*) from (select 1 from `laneway_message` limit $3) m),
    (select count(*) from (select 1 from `laneway_dead` limit $3) d),
    (select count(*) from (
        select 1 from `laneway_history` force index (history_settled) where settled is null limit $3) h),
    (select count(*) from (
        select 1 from `laneway_history` force index (history_settled)
        where (settled = $1 and id > $2) or settled > $1 limit $3) h),
    (select count(*) from (select 1 from `laneway_gap` limit $3) g)

-- name: recount_kinds
-- $1 and $2: position in the history, $3: last message id counted. What kind_count should hold: what is there,
-- without what history entries that are not counted yet say, and without what is in a gap. One statement, so of one
-- snapshot. Gaps are read once: of those before a row the last to begin ends last.
select t.queue, t.kind, sum(t.live), sum(t.dead) from (
    select t.*, max(t.gap) over (order by t.id, t.live is not null rows unbounded preceding) as gap_end from (
        select id, queue, kind, 1 as live, 0 as dead, null as gap from `laneway_message`
        union all
        select id, queue, kind, 0, 1, null from `laneway_dead`
        union all
        select message_id, queue, kind, (outcome in ('completed', 'cancelled', 'lapsed')) + dead - (outcome = 'redriven'),
            (outcome in ('redriven', 'discarded')) - dead, null
        from `laneway_history` force index (history_settled)
        where (settled is null or (settled = $1 and id > $2) or settled > $1) and outcome <> 'stale'
        union all
        select first_id, '', '', null, null, last_id from `laneway_gap`
    ) t
) t
where t.id <= $3 and t.live is not null and coalesce(t.gap_end < t.id, true)
group by t.queue, t.kind

-- name: delete_kind_counts
delete from `laneway_kind_count`

-- name: minutes
-- $1: span of the rows, $2: from and $3: before which minute, $4: step in minutes; $5: queue, $6: kind, null for
-- all; $7: whether queues and $8: whether kinds are kept apart. The depth is that of the step's last row, or of the
-- last one that has been noted. Sums of floating-point numbers are exact here, and twice as fast.
select (m.at div $4) * $4, case when $7 then m.queue end, case when $8 then m.kind end,
    sum(published + 0e0), sum(started + 0e0), sum(completed + 0e0), sum(retried + 0e0), sum(failed + 0e0), sum(expired + 0e0), sum(deferred + 0e0),
    sum(given_back + 0e0), sum(cancelled + 0e0), sum(lapsed + 0e0), sum(redriven + 0e0), sum(discarded + 0e0), sum(dead + 0e0), sum(w0 + 0e0),
    sum(w1 + 0e0), sum(w2 + 0e0), sum(w3 + 0e0), sum(w4 + 0e0), sum(w5 + 0e0), sum(w6 + 0e0), sum(w7 + 0e0), sum(w8 + 0e0), sum(w9 + 0e0), sum(w10 + 0e0), sum(w11 + 0e0),
    sum(w12 + 0e0), sum(r0 + 0e0), sum(r1 + 0e0), sum(r2 + 0e0), sum(r3 + 0e0), sum(r4 + 0e0), sum(r5 + 0e0), sum(r6 + 0e0), sum(r7 + 0e0), sum(r8 + 0e0), sum(r9 + 0e0),
    sum(r10 + 0e0), sum(r11 + 0e0), sum(r12 + 0e0),
    sum(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.depth end),
    min(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.oldest_due end), max(m.partial)
from `laneway_minute` m cross join `laneway_fold` f
where m.span = $1 and m.at >= $2 and m.at < $3 and ($5 is null or m.queue = $5) and ($6 is null or m.kind = $6)
group by 1, 2, 3
order by 1, 2, 3

-- name: minutes_without_times
-- The same without waits and runs.
select (m.at div $4) * $4, case when $7 then m.queue end, case when $8 then m.kind end,
    sum(published + 0e0), sum(started + 0e0), sum(completed + 0e0), sum(retried + 0e0), sum(failed + 0e0), sum(expired + 0e0), sum(deferred + 0e0),
    sum(given_back + 0e0), sum(cancelled + 0e0), sum(lapsed + 0e0), sum(redriven + 0e0), sum(discarded + 0e0), sum(dead + 0e0),
    sum(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.depth end),
    min(case when mod(m.at + $1, $4) = 0 or m.at = f.noted div $1 * $1 then m.oldest_due end), max(m.partial)
from `laneway_minute` m cross join `laneway_fold` f
where m.span = $1 and m.at >= $2 and m.at < $3 and ($5 is null or m.queue = $5) and ($6 is null or m.kind = $6)
group by 1, 2, 3
order by 1, 2, 3
