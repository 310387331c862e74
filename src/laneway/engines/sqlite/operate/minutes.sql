-- name: fold_position
-- How far upkeep has read messages and history, how far there is to read, up to which minute it has noted
-- depths.
select f.message_id, f.history_id, s.message_id,
    coalesce((select h.id from "laneway_history" h order by h.id desc limit 1), 0), f.noted_to
from "laneway_fold" f, "laneway_state" s

-- name: ended_since
-- $1: the last id read, $2: limit. What the figures need of the history.
select id, queue, kind, outcome, dead, due, published_at, claimed_at, started_at, ended_at
from "laneway_history" where id > $1 order by id limit $2

-- name: published_between
-- $1 and $2: the last id read, and the last to read. How many were published, by minute, queue and kind.
-- A message is in one of these tables, or in several while it is retried: it is counted once.
select first_published_at - first_published_at % 60000000 as minute, queue, kind, count(*)
from (
    select id, queue, kind, first_published_at
    from (
        select m.id, c.queue, m.kind, m.first_published_at
        from "laneway_message" m cross join "laneway_channel" c
        where m.id > $1 and m.id <= $2 and c.id = m.channel_id
        union all
        select id, queue, kind, first_published_at from "laneway_dead" where id > $1 and id <= $2
        union all
        select message_id, queue, kind, first_published_at from "laneway_history"
        where message_id > $1 and message_id <= $2 and first_published_at is not null
    )
    group by id
) p
-- What releases nodes of flows counts them.
where (select s.flows from "laneway_state" s) = 0 or not exists (select 1 from "laneway_flow_node" n where n.id = p.id)
group by minute, queue, kind

-- name: move_fold
-- $1 and $2: message and history id that were read from, $3 and $4: read to. Answers nothing if another
-- process has counted these meanwhile.
update "laneway_fold" set message_id = $3, history_id = $4
where message_id = $1 and history_id = $2 returning single

-- name: add_minute
-- $1..$4: span, its beginning, queue, kind; the others: what is added to its figures.
insert into "laneway_minute" (
    span, at, queue, kind, published, started, completed, retried, failed, expired, deferred,
    given_back, cancelled, lapsed, redriven, discarded, dead, wait_0, wait_1, wait_2, wait_3,
    wait_4, wait_5, wait_6, wait_7, wait_8, wait_9, wait_10, wait_11, wait_12, run_0, run_1,
    run_2, run_3, run_4, run_5, run_6, run_7, run_8, run_9, run_10, run_11, run_12)
values (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39,
    $40, $41, $42, $43)
on conflict (span, at, queue, kind) do update set
    published = published + excluded.published, started = started + excluded.started,
    completed = completed + excluded.completed, retried = retried + excluded.retried,
    failed = failed + excluded.failed, expired = expired + excluded.expired,
    deferred = deferred + excluded.deferred, given_back = given_back + excluded.given_back,
    cancelled = cancelled + excluded.cancelled, lapsed = lapsed + excluded.lapsed,
    redriven = redriven + excluded.redriven, discarded = discarded + excluded.discarded,
    dead = dead + excluded.dead, wait_0 = wait_0 + excluded.wait_0,
    wait_1 = wait_1 + excluded.wait_1, wait_2 = wait_2 + excluded.wait_2,
    wait_3 = wait_3 + excluded.wait_3, wait_4 = wait_4 + excluded.wait_4,
    wait_5 = wait_5 + excluded.wait_5, wait_6 = wait_6 + excluded.wait_6,
    wait_7 = wait_7 + excluded.wait_7, wait_8 = wait_8 + excluded.wait_8,
    wait_9 = wait_9 + excluded.wait_9, wait_10 = wait_10 + excluded.wait_10,
    wait_11 = wait_11 + excluded.wait_11, wait_12 = wait_12 + excluded.wait_12,
    run_0 = run_0 + excluded.run_0, run_1 = run_1 + excluded.run_1, run_2 = run_2 + excluded.run_2,
    run_3 = run_3 + excluded.run_3, run_4 = run_4 + excluded.run_4, run_5 = run_5 + excluded.run_5,
    run_6 = run_6 + excluded.run_6, run_7 = run_7 + excluded.run_7, run_8 = run_8 + excluded.run_8,
    run_9 = run_9 + excluded.run_9, run_10 = run_10 + excluded.run_10,
    run_11 = run_11 + excluded.run_11, run_12 = run_12 + excluded.run_12

-- name: delete_old_minutes
-- $1: span, $2: before, $3: limit.
delete from "laneway_minute" where (span, at, queue, kind) in (
    select span, at, queue, kind from "laneway_minute" where span = $1 and at < $2 order by at limit $3)
returning 1

-- name: delete_old_depths
-- $1: before, $2: limit.
delete from "laneway_depth" where (at, queue) in (
    select at, queue from "laneway_depth" where at < $1 order by at limit $2)
returning 1

-- name: delete_old_gaps
-- $1: before, $2: limit.
delete from "laneway_history_gap" where rowid in (
    select rowid from "laneway_history_gap" where ends < $1 limit $2)

-- name: last_depths
-- Queues that had messages when depths were noted last.
select queue from "laneway_depth"
where at = (select at from "laneway_depth" order by at desc limit 1) and depth > 0

-- name: note_depths
-- $1: up to which minute depths are noted now. Answers nothing if another process has done it.
update "laneway_fold" set noted_to = $1 where noted_to < $1 returning single

-- name: add_depth
-- $1: minute, $2: queue, $3: depth, $4: oldest due.
insert into "laneway_depth" (at, queue, depth, oldest_due) values ($1, $2, $3, $4)
on conflict (at, queue) do nothing

-- name: minutes
-- $1: span, $2: since, $3: until, $4: queue, $5: kind; null matches all. $6: step, $7 and $8: whether
-- queues and kinds are kept apart.
select at - at % $6 as step, case when $7 then queue else $4 end as one_queue,
    case when $8 then kind else $5 end as one_kind,
    sum(published), sum(started), sum(completed), sum(retried), sum(failed), sum(expired),
    sum(deferred), sum(given_back), sum(cancelled), sum(lapsed), sum(redriven), sum(discarded),
    sum(dead), sum(wait_0), sum(wait_1), sum(wait_2), sum(wait_3), sum(wait_4), sum(wait_5),
    sum(wait_6), sum(wait_7), sum(wait_8), sum(wait_9), sum(wait_10), sum(wait_11), sum(wait_12),
    sum(run_0), sum(run_1), sum(run_2), sum(run_3), sum(run_4), sum(run_5), sum(run_6),
    sum(run_7), sum(run_8), sum(run_9), sum(run_10), sum(run_11), sum(run_12)
from "laneway_minute"
where span = $1 and at >= $2 and at < $3 and ($4 is null or queue = $4) and ($5 is null or kind = $5)
group by step, one_queue, one_kind
order by step, one_queue, one_kind

-- name: depths
-- $1: since, $2: until, $3: queue, null for all, $4: step, $5: the last step. Depths at the end of each
-- step; of the last one those that there are.
select at, queue, null, depth, oldest_due from "laneway_depth"
where at >= $1 and at < $2 and ($3 is null or queue = $3) and (at % $4 = $4 - 60000000 or at >= $5)
order by at

-- name: history_gaps
select begins, ends from "laneway_history_gap" order by begins
