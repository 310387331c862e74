-- name: dead_letters
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: limit, $9 and $10: died_at and id of the last one seen, $11 and $12: of the
-- last one to look at. The newest come first.
select id, queue, channel, kind, substr(`key`, 17) as `key`, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error,
    traceback
from `laneway_dead` force index (dead_order)
where queue = $1
    and ($2 is null or channel = $2)
    and ($3 is null or kind = $3)
    and ($4 is null or reason = $4)
    and ($7 is null or error_type = $7)
    and died_at >= coalesce($5, -9223372036854775807)
    and died_at < coalesce($6, 9223372036854775807)
    and died_at <= coalesce($9, 9223372036854775807)
    and (died_at < coalesce($9, 9223372036854775807) or id < coalesce($10, 9223372036854775807))
    and died_at >= coalesce($11, -9223372036854775807)
    and (died_at > coalesce($11, -9223372036854775807) or id >= coalesce($12, 0))
order by died_at desc, id desc
limit $8

-- name: dead_letter_reach
-- $1: queue, $2: since, $3: until, $4 and $5: died_at and id of the last one seen.
-- $6: how many to pass. Where a look of one more than these ends.
select died_at, id
from `laneway_dead` force index (dead_order)
where queue = $1
    and died_at >= coalesce($2, -9223372036854775807)
    and died_at < coalesce($3, 9223372036854775807)
    and died_at <= coalesce($4, 9223372036854775807)
    and (died_at < coalesce($4, 9223372036854775807) or id < coalesce($5, 9223372036854775807))
order by died_at desc, id desc
limit 1 offset $6

-- name: pass_dead_letters
-- $1: queue, $2 and $3: died_at and id of the last one seen, $4: how many to pass. The oldest first, and as few
-- conditions as possible: each is checked for every row.
select died_at, id
from `laneway_dead` force index (dead_order)
where queue = $1
    and died_at >= $2 and (died_at > $2 or id > $3)
order by died_at, id
limit 1 offset $4

-- name: count_dead_letters
-- $1: queue, $2 and $3: died_at and id of the last one counted, $4: until; null matches all. $5: where to
-- stop counting.
select count(*) from (
    select id from `laneway_dead` force index (dead_order)
    where queue = $1
        and died_at >= $2 and (died_at > $2 or id > $3)
        and died_at < coalesce($4, 9223372036854775807)
    limit $5
) d

-- name: count_dead_letters_matching
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: how many to look at, the newest. How many match, and how many there were.
select coalesce(sum(fits), 0), count(*)
from (
    select ($2 is null or channel = $2)
    and ($3 is null or kind = $3)
    and ($4 is null or reason = $4)
    and ($7 is null or error_type = $7) as fits from `laneway_dead` force index (dead_order)
    where queue = $1
        and died_at >= coalesce($5, -9223372036854775807)
        and died_at < coalesce($6, 9223372036854775807)
    order by died_at desc, id desc
    limit $8
) d

-- name: dead_letter_ids
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: how many to look at, $9 and $10: died_at and id of the last one seen, $11: only those that
-- died until then. The oldest first, and whether each matches.
select id, died_at, (($2 is null or channel = $2)
    and ($3 is null or kind = $3)
    and ($4 is null or reason = $4)
    and ($7 is null or error_type = $7)) as fits
from `laneway_dead` force index (dead_order)
where queue = $1
    and died_at >= coalesce($5, -9223372036854775807)
    and died_at < coalesce($6, 9223372036854775807)
    and died_at <= $11
    and died_at >= coalesce($9, -9223372036854775807)
    and (died_at > coalesce($9, -9223372036854775807) or id > coalesce($10, 0))
order by died_at, id
limit $8

-- name: all_dead_letters
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: limit, $8 and $9: died_at and id of the last one seen, $10 and $11: of the
-- last one to look at. The newest come first.
select id, queue, channel, kind, substr(`key`, 17) as `key`, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error,
    traceback
from `laneway_dead` force index (dead_time)
where ($1 is null or channel = $1)
    and ($2 is null or kind = $2)
    and ($3 is null or reason = $3)
    and ($6 is null or error_type = $6)
    and died_at >= coalesce($4, -9223372036854775807)
    and died_at < coalesce($5, 9223372036854775807)
    and died_at <= coalesce($8, 9223372036854775807)
    and (died_at < coalesce($8, 9223372036854775807) or id < coalesce($9, 9223372036854775807))
    and died_at >= coalesce($10, -9223372036854775807)
    and (died_at > coalesce($10, -9223372036854775807) or id >= coalesce($11, 0))
order by died_at desc, id desc
limit $7

-- name: all_dead_letter_reach
-- $1: since, $2: until, $3 and $4: died_at and id of the last one seen.
-- $5: how many to pass. Where a look of one more than these ends.
select died_at, id
from `laneway_dead` force index (dead_time)
where died_at >= coalesce($1, -9223372036854775807)
    and died_at < coalesce($2, 9223372036854775807)
    and died_at <= coalesce($3, 9223372036854775807)
    and (died_at < coalesce($3, 9223372036854775807) or id < coalesce($4, 9223372036854775807))
order by died_at desc, id desc
limit 1 offset $5

-- name: pass_all_dead_letters
-- $1 and $2: died_at and id of the last one seen, $3: how many to pass. The oldest first, and as few
-- conditions as possible: each is checked for every row.
select died_at, id
from `laneway_dead` force index (dead_time)
where died_at >= $1 and (died_at > $1 or id > $2)
order by died_at, id
limit 1 offset $3

-- name: count_all_dead_letters
-- $1 and $2: died_at and id of the last one counted, $3: until; null matches all. $4: where to
-- stop counting.
select count(*) from (
    select id from `laneway_dead` force index (dead_time)
    where died_at >= $1 and (died_at > $1 or id > $2)
        and died_at < coalesce($3, 9223372036854775807)
    limit $4
) d

-- name: count_all_dead_letters_matching
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: how many to look at, the newest. How many match, and how many there were.
select coalesce(sum(fits), 0), count(*)
from (
    select ($1 is null or channel = $1)
    and ($2 is null or kind = $2)
    and ($3 is null or reason = $3)
    and ($6 is null or error_type = $6) as fits from `laneway_dead` force index (dead_time)
    where died_at >= coalesce($4, -9223372036854775807)
        and died_at < coalesce($5, 9223372036854775807)
    order by died_at desc, id desc
    limit $7
) d

-- name: all_dead_letter_ids
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: how many to look at, $8 and $9: died_at and id of the last one seen, $10: only those that
-- died until then. The oldest first, and whether each matches.
select id, died_at, (($1 is null or channel = $1)
    and ($2 is null or kind = $2)
    and ($3 is null or reason = $3)
    and ($6 is null or error_type = $6)) as fits
from `laneway_dead` force index (dead_time)
where died_at >= coalesce($4, -9223372036854775807)
    and died_at < coalesce($5, 9223372036854775807)
    and died_at <= $10
    and died_at >= coalesce($8, -9223372036854775807)
    and (died_at > coalesce($8, -9223372036854775807) or id > coalesce($9, 0))
order by died_at, id
limit $7

-- name: count_dead_letter_ids
-- $1: ids, $2: where to stop counting.
select count(*) from (select 1 from `laneway_dead` where id in ($1...) limit $2) d

-- name: dead_letter_groups
-- Cut inside: a temporary table of long values would be on disk.
-- $1: queue, $2: how many letters to look at, $3: how much of an error's text to compare.
select queue, kind, reason, error_type, error, count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, left(reason, 500) as reason, left(error_type, 500) as error_type, left(error, $3) as error, died_at
    from `laneway_dead` force index (dead_order)
    where queue = $1 order by died_at desc, id desc limit $2
) d
group by 1, 2, 3, 4, 5

-- name: all_dead_letter_groups
-- $1: how many letters to look at, $2: how much of an error's text to compare. Of all queues.
select queue, kind, reason, error_type, error, count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, left(reason, 500) as reason, left(error_type, 500) as error_type, left(error, $2) as error, died_at
    from `laneway_dead` force index (dead_time) order by died_at desc, id desc limit $1
) d
group by 1, 2, 3, 4, 5

-- name: lock_dead_letters
-- $1: ids in order, $2: now. Skips those that another session is redriving or discarding.
select d.id, d.queue, d.channel, d.kind, d.`key`, d.key_window, d.priority, d.attempt, d.reason, d.error_type,
    d.published_at, d.first_published_at, octet_length(d.payload), coalesce($2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    (select s.history from `laneway_setting` s), d.flow_id
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
for update skip locked

-- name: redrive
-- $1: ids, locked by us, $2: due, $3: now, $4: new max_attempts, or null. The id, the attempt count and the
-- time of the first publish stay.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, key_window, attempt,
    spent, max_attempts, priority, queue, channel, kind, `key`, content_type, headers, state_type, state, payload,
    flow_id)
select d.id, unhex(substr(sha2(concat(octet_length(d.queue), ':', d.queue, d.channel), 256), 1, 32)), $2, $3,
    d.first_published_at, d.key_window, d.attempt, 0, coalesce($4, d.max_attempts), d.priority, d.queue,
    d.channel, d.kind, d.`key`, d.content_type, d.headers, d.state_type, d.state, d.payload, d.flow_id
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id

-- name: delete_dead_letters
-- $1: ids.
delete t from $1:ids x straight_join `laneway_dead` t force index (primary) on t.id = x.id

-- name: keep_discarded
-- $1: ids of dead letters, locked by us, $2: now. As keep_ended.
insert ignore into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome, reason,
    error_type, error)
select d.id, $2, $2 + cast(1000000 * greatest(least(json_extract(convert(d.headers using utf8mb4), '$."laneway-keep-result"') + 0e0, 315360000), 0) as signed), d.queue, d.channel, d.kind,
    'discarded', d.reason, d.error_type, d.error
from $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
where d.headers is not null and json_type(json_extract(convert(d.headers using utf8mb4), '$."laneway-keep-result"')) in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL')

-- name: untold_dead_letters
-- $1: queues, $2 and $3: between which times, $4: limit. Skips those that are locked.
select id, queue, channel, kind, substr(`key`, 17) as `key`, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error, traceback
from `laneway_dead` force index (dead_untold)
where queue in ($1...) and tell_at > $2 and tell_at <= $3 and died_at > $2
order by tell_at, id
limit $4
for update skip locked

-- name: hold_dead_letters
-- $1: ids, locked by us, $2: until when.
update $1:ids x straight_join `laneway_dead` d force index (primary) on d.id = x.id
set d.tell_at = $2

-- name: dead_letters_told
-- $1: id, $2: when it died.
update `laneway_dead` set tell_at = null where id = $1 and died_at = $2

-- name: add_operation
-- $1: action, $2: filter as JSON, $3: options as JSON, $4: how many, $5: actor, $6: now.
insert into `laneway_operation` (action, wanted, options, total, actor, started_at)
values ($1, $2, $3, $4, $5, coalesce($6, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))))

-- name: last_operation
-- The one that this session has just added.
select id, action, wanted, options, total, done, state, actor, started_at, ended_at, error from `laneway_operation` where id = last_insert_id()

-- name: lock_operation
-- $1: id, or null for the first that runs. Skips those that others are at.
select id, action, wanted, options, started_at, died_at, letter from `laneway_operation` force index (operation_running)
where running = 1 and ($1 is null or id = $1) order by id limit 1
for update skip locked

-- name: move_operation
-- $1: letters done, $2 and $3: died_at and id of the last one, $4: whether it has ended, $5: now, $6: id,
-- locked by us. A letter may have died just before the operation began and have been seen just after.
update `laneway_operation` set total = greatest(total, done + $1), done = done + $1, died_at = $2, letter = $3,
    state = case when $4 then 'done' else state end, running = case when $4 then null else 1 end,
    ended_at = case when $4 then coalesce($5, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))) end
where id = $6

-- name: end_operation
-- $1: state, $2: error, $3: now, $4: id. If it still runs.
update `laneway_operation` set state = $1, error = $2, running = null, ended_at = coalesce($3, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
where id = $4 and state = 'running'

-- name: operations
-- $1: id, or null for all, $2: limit. The newest first.
select id, action, wanted, options, total, done, state, actor, started_at, ended_at, error from `laneway_operation`
where id between coalesce($1, 0) and coalesce($1, 9223372036854775807) order by id desc limit $2
