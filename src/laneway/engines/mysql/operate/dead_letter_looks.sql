-- name: dead_letters
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: limit, $9 and $10: died_at and id of the last one seen, $11 and $12: of the
-- last one to look at. The newest come first.
select id, queue, channel, kind, `key`, priority, died_at, published_at, first_published_at, attempt,
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

-- name: count_dead_letters
-- $1: queue, $2: since, $3: until; null matches all. $4: where to stop counting.
select count(*) from (
    select id from `laneway_dead` force index (dead_order)
    where queue = $1
        and died_at >= coalesce($2, -9223372036854775807)
        and died_at < coalesce($3, 9223372036854775807)
    limit $4
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
select id, queue, channel, kind, `key`, priority, died_at, published_at, first_published_at, attempt,
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

-- name: count_all_dead_letters
-- $1: since, $2: until; null matches all. $3: where to stop counting.
select count(*) from (
    select id from `laneway_dead` force index (dead_time)
    where died_at >= coalesce($1, -9223372036854775807)
        and died_at < coalesce($2, 9223372036854775807)
    limit $3
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
