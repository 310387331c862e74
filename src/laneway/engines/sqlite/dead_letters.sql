-- SQLite begins and ends a scan at one bound each way: of several it takes any, and reads the rest. So the tighter one
-- is computed (max, min), and a plus keeps the others from the index.

-- name: dead_letters
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: limit, $9 and $10: died_at and id of the last one seen, $11 and $12: of the
-- last one to look at. The newest come first.
select id, queue, channel, kind, substr(key, 17) as key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error,
    traceback
from "laneway_dead" indexed by "laneway_dead_order"
where queue = $1
    and ($2 is null or channel = $2)
    and ($3 is null or kind = $3)
    and ($4 is null or reason = $4)
    and ($7 is null or error_type = $7)
    and died_at >= max(coalesce($5, -9223372036854775807), coalesce($11, -9223372036854775807))
    and died_at <= min(coalesce($6, 9223372036854775807), coalesce($9, 9223372036854775807))
    and +died_at < coalesce($6, 9223372036854775807)
    and (+died_at, id) < (coalesce($9, 9223372036854775807), coalesce($10, 9223372036854775807))
    and (+died_at, id) >= (coalesce($11, -9223372036854775807), coalesce($12, 0))
order by died_at desc, id desc
limit $8

-- name: dead_letter_reach
-- $1: queue, $2: since, $3: until, $4 and $5: died_at and id of the last one seen.
-- $6: how many to pass. Where a look of one more than these ends.
select died_at, id
from "laneway_dead" indexed by "laneway_dead_order"
where queue = $1
    and died_at >= coalesce($2, -9223372036854775807)
    and died_at <= min(coalesce($3, 9223372036854775807), coalesce($4, 9223372036854775807))
    and +died_at < coalesce($3, 9223372036854775807)
    and (+died_at, id) < (coalesce($4, 9223372036854775807), coalesce($5, 9223372036854775807))
order by died_at desc, id desc
limit 1 offset $6

-- name: count_dead_letters
-- $1: queue, $2: since, $3: until; null matches all. $4: where to stop counting.
select count(*) from (
    select id from "laneway_dead" indexed by "laneway_dead_order"
    where queue = $1
        and died_at >= coalesce($2, -9223372036854775807)
        and died_at < coalesce($3, 9223372036854775807)
    limit $4
) d

-- name: count_dead_letters_matching
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: how many to look at, the newest. How many match, and how many there were.
select coalesce(sum(case when ($2 is null or channel = $2)
    and ($3 is null or kind = $3)
    and ($4 is null or reason = $4)
    and ($7 is null or error_type = $7) then 1 else 0 end), 0), count(*)
from (
    select channel, kind, reason, error_type from "laneway_dead" indexed by "laneway_dead_order"
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
from "laneway_dead" indexed by "laneway_dead_order"
where queue = $1
    and died_at >= max(coalesce($5, -9223372036854775807), coalesce($9, -9223372036854775807))
    and died_at <= min(coalesce($6, 9223372036854775807), $11)
    and +died_at < coalesce($6, 9223372036854775807)
    and (+died_at, id) > (coalesce($9, -9223372036854775807), coalesce($10, 0))
order by died_at, id
limit $8

-- name: all_dead_letters
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: limit, $8 and $9: died_at and id of the last one seen, $10 and $11: of the
-- last one to look at. The newest come first.
select id, queue, channel, kind, substr(key, 17) as key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error,
    traceback
from "laneway_dead" indexed by "laneway_dead_time"
where ($1 is null or channel = $1)
    and ($2 is null or kind = $2)
    and ($3 is null or reason = $3)
    and ($6 is null or error_type = $6)
    and died_at >= max(coalesce($4, -9223372036854775807), coalesce($10, -9223372036854775807))
    and died_at <= min(coalesce($5, 9223372036854775807), coalesce($8, 9223372036854775807))
    and +died_at < coalesce($5, 9223372036854775807)
    and (+died_at, id) < (coalesce($8, 9223372036854775807), coalesce($9, 9223372036854775807))
    and (+died_at, id) >= (coalesce($10, -9223372036854775807), coalesce($11, 0))
order by died_at desc, id desc
limit $7

-- name: all_dead_letter_reach
-- $1: since, $2: until, $3 and $4: died_at and id of the last one seen.
-- $5: how many to pass. Where a look of one more than these ends.
select died_at, id
from "laneway_dead" indexed by "laneway_dead_time"
where died_at >= coalesce($1, -9223372036854775807)
    and died_at <= min(coalesce($2, 9223372036854775807), coalesce($3, 9223372036854775807))
    and +died_at < coalesce($2, 9223372036854775807)
    and (+died_at, id) < (coalesce($3, 9223372036854775807), coalesce($4, 9223372036854775807))
order by died_at desc, id desc
limit 1 offset $5

-- name: count_all_dead_letters
-- $1: since, $2: until; null matches all. $3: where to stop counting.
select count(*) from (
    select id from "laneway_dead" indexed by "laneway_dead_time"
    where died_at >= coalesce($1, -9223372036854775807)
        and died_at < coalesce($2, 9223372036854775807)
    limit $3
) d

-- name: count_all_dead_letters_matching
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: how many to look at, the newest. How many match, and how many there were.
select coalesce(sum(case when ($1 is null or channel = $1)
    and ($2 is null or kind = $2)
    and ($3 is null or reason = $3)
    and ($6 is null or error_type = $6) then 1 else 0 end), 0), count(*)
from (
    select channel, kind, reason, error_type from "laneway_dead" indexed by "laneway_dead_time"
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
from "laneway_dead" indexed by "laneway_dead_time"
where died_at >= max(coalesce($4, -9223372036854775807), coalesce($8, -9223372036854775807))
    and died_at <= min(coalesce($5, 9223372036854775807), $10)
    and +died_at < coalesce($5, 9223372036854775807)
    and (+died_at, id) > (coalesce($8, -9223372036854775807), coalesce($9, 0))
order by died_at, id
limit $7

-- name: count_dead_letter_ids
-- $1: ids, $2: where to stop counting.
select count(*) from (
    select id from "laneway_dead" where id in (select value from json_each($1)) limit $2
) d

-- name: dead_letter_groups
-- $1: queue, $2: how many letters to look at, $3: how much of an error's text to compare.
select queue, kind, reason, error_type, substr(error, 1, $3), count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, reason, error_type, error, died_at
    from "laneway_dead" indexed by "laneway_dead_order"
    where queue = $1 order by died_at desc, id desc limit $2
)
group by 1, 2, 3, 4, 5

-- name: all_dead_letter_groups
-- $1: how many letters to look at, $2: how much of an error's text to compare. Of all queues.
select queue, kind, reason, error_type, substr(error, 1, $2), count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, reason, error_type, error, died_at
    from "laneway_dead" indexed by "laneway_dead_time" order by died_at desc, id desc limit $1
)
group by 1, 2, 3, 4, 5

-- name: dead_letter_channels
-- $1: ids. Those that are dead letters, with their channels, by id.
select d.id, d.queue, d.channel from json_each($1) j cross join "laneway_dead" d
where d.id = j.value order by d.id

-- name: redrive
-- $1: ids of dead letters, $2: due, $3: new max_attempts (null: unchanged), $4: now. The messages keep
-- their id, attempt count and first_published_at.
insert into "laneway_message" (
    id, channel_id, priority, due, published_at, first_published_at, attempt, max_attempts, kind, key,
    key_window, content_type, headers, state_type, state, payload)
select d.id, c.id, d.priority, $2, $4, d.first_published_at, d.attempt, coalesce($3, d.max_attempts),
    d.kind, d.key, d.key_window, d.content_type, d.headers, d.state_type, d.state, d.payload
from json_each($1) j cross join "laneway_dead" d cross join "laneway_channel" c
where d.id = j.value and c.queue = d.queue and c.name = d.channel
returning id, channel_id, priority

-- name: add_dead_letter_history
-- $1: ids of dead letters, $2: outcome, $3: terminal, $4: now.
insert into "laneway_history" (
    message_id, attempt, first_published_at, published_at, ended_at, payload_size, terminal, dead,
    priority, queue, channel, kind, outcome, reason, error_type)
select d.id, d.attempt, d.first_published_at, d.published_at, $4, length(d.payload), $3, 0,
    d.priority, d.queue, d.channel, d.kind, $2, d.reason, d.error_type
from "laneway_state" s cross join "laneway_dead" d
where s.history <> 'none' and d.id in (select value from json_each($1))

-- name: subtract_dead_counts
-- $1: ids of dead letters that are about to be deleted.
insert into "laneway_dead_count" (queue, channel, n)
select queue, channel, -count(*) from "laneway_dead"
where id in (select value from json_each($1)) group by queue, channel
on conflict (queue, channel) do update set n = n + excluded.n

-- name: delete_dead_letters
-- $1: ids.
delete from "laneway_dead" where id in (select value from json_each($1))
returning id, queue, key, key_window

-- name: keep_discarded
-- $1: ids of dead letters, $2: now. As keep_ended.
insert into "laneway_result" (
    message_id, ended_at, expires_at, queue, channel, kind, outcome, reason, error_type, error)
select d.id, $2, $2 + cast(1000000 * max(min(json_extract(d.headers, '$."laneway-keep-result"'), 315360000), 0) as integer),
    d.queue, d.channel, d.kind, 'discarded', d.reason, d.error_type, d.error
from json_each($1) j cross join "laneway_dead" d
where d.id = j.value and d.headers is not null and json_type(d.headers, '$."laneway-keep-result"') in ('integer', 'real')
on conflict (message_id) do nothing

-- name: untold_dead_letter_ids
-- $1: queues, $2 and $3: between which times, $4: limit.
select d.id from json_each($1) j cross join "laneway_dead" d indexed by "laneway_dead_untold"
where d.queue = j.value and d.tell_at > $2 and d.tell_at <= $3 and d.died_at > $2
order by d.tell_at, d.id limit $4

-- name: hold_dead_letters
-- $1: ids, $2: until when.
update "laneway_dead" set tell_at = $2 where id in (select value from json_each($1))
returning id, queue, channel, kind, substr(key, 17) as key, priority, died_at, published_at, first_published_at, attempt,
    max_attempts, content_type, headers, payload, reason, error_type, error, traceback

-- name: dead_letters_told
-- $1: id, $2: when it died.
update "laneway_dead" set tell_at = null where id = $1 and died_at = $2

-- name: add_operation
-- $1: action, $2: filter as JSON, $3: options as JSON, $4: how many, $5: actor, $6: now.
insert into "laneway_operation" (action, wanted, options, total, actor, started_at)
values ($1, $2, $3, $4, $5, $6)
returning id, action, wanted, options, total, done, state, actor, started_at, ended_at, error

-- name: running_operation
-- $1: id, or null for the first that runs.
select id, action, wanted, options, started_at, died_at, letter from "laneway_operation"
where state = 'running' and ($1 is null or id = $1) order by id limit 1

-- name: move_operation
-- $1: id, $2: letters done, $3 and $4: died_at and id of the last one, $5: whether it has ended, $6: now.
update "laneway_operation" set total = max(total, done + $2), done = done + $2, died_at = $3, letter = $4,
    state = case when $5 then 'done' else state end, ended_at = case when $5 then $6 end
where id = $1

-- name: end_operation
-- $1: id, $2: state, $3: error, $4: now. If it still runs.
update "laneway_operation" set state = $2, error = $3, ended_at = $4 where id = $1 and state = 'running'

-- name: operations
-- $1: id, or null for all, $2: limit. The newest first.
select id, action, wanted, options, total, done, state, actor, started_at, ended_at, error from "laneway_operation"
where id between coalesce($1, 0) and coalesce($1, 9223372036854775807) order by id desc limit $2
