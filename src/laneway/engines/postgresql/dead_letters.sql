-- Each look goes along one index, dead_order or dead_time, from a place in it, and for as many rows as it is told. So the
-- place is a row of all its columns: with queue = … the planner may go through the letters of all queues by time. And other
-- conditions come after the limit: a bound on a column behind the first one does not end a scan before PostgreSQL 18.
-- Ids begin at 1.

-- name: dead_letters
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: limit, $9 and $10: died_at and id of the last one seen, $11: how many to look at. The newest come first, each after the
-- place where the look ended: nowhere if there are no more, and one row without a letter if none matches.
select r.died_at, r.id, d.id, d.queue, d.channel, d.kind, d.key, d.priority, d.died_at, d.published_at, d.first_published_at,
    d.attempt, d.max_attempts, d.content_type, CAST(d.headers AS text) as headers, d.payload, d.reason, d.error_type, d.error,
    d.traceback
from (values (1)) one
left join lateral (
    select died_at, id from "laneway".dead_letter_v1
    where (queue, died_at, id) >= (CAST($1 AS text), '-infinity', 0)
        and (queue, died_at, id) < (CAST($1 AS text), least(CAST($9 AS timestamptz), CAST($6 AS timestamptz), 'infinity'),
            case when CAST($9 AS timestamptz) < coalesce(CAST($6 AS timestamptz), 'infinity') then CAST($10 AS bigint) else 0 end)
    order by queue desc, died_at desc, id desc
    limit 1 offset CAST($11 AS integer) - 1
) r on r.died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')
left join lateral (
    select w.* from (
        select * from "laneway".dead_letter_v1
        where (queue, died_at, id) >= (CAST($1 AS text), '-infinity', 0)
            and (queue, died_at, id) < (CAST($1 AS text), least(CAST($9 AS timestamptz), CAST($6 AS timestamptz), 'infinity'),
                case when CAST($9 AS timestamptz) < coalesce(CAST($6 AS timestamptz), 'infinity') then CAST($10 AS bigint) else 0 end)
        order by queue desc, died_at desc, id desc
        limit CAST($11 AS integer)
    ) w
    where (CAST($2 AS text) is null or channel = CAST($2 AS text))
        and (CAST($3 AS text) is null or kind = CAST($3 AS text))
        and (CAST($4 AS text) is null or reason = CAST($4 AS text))
        and (CAST($7 AS text) is null or error_type = CAST($7 AS text))
        and died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')
    order by queue desc, died_at desc, id desc
    limit CAST($8 AS integer)
) d on true
order by d.died_at desc, d.id desc

-- name: count_dead_letters
-- $1: queue, $2: since, $3: until; null matches all. $4: where to stop counting.
select count(*) from (
    select id from "laneway".dead_letter_v1
    where queue = CAST($1 AS text)
        and died_at >= coalesce(CAST($2 AS timestamptz), '-infinity')
        and died_at < coalesce(CAST($3 AS timestamptz), 'infinity')
    limit CAST($4 AS integer)
) d

-- name: count_dead_letters_matching
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: how many to look at, the newest. How many match, and how many there were.
select count(*) filter (where (CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
    and (CAST($4 AS text) is null or reason = CAST($4 AS text))
    and (CAST($7 AS text) is null or error_type = CAST($7 AS text))), count(*)
from (
    select died_at, channel, kind, reason, error_type from "laneway".dead_letter_v1
    where (queue, died_at, id) >= (CAST($1 AS text), '-infinity', 0) and (queue, died_at, id) < (CAST($1 AS text), coalesce(CAST($6 AS timestamptz), 'infinity'), 0)
    order by queue desc, died_at desc, id desc
    limit CAST($8 AS integer)
) d
where died_at >= coalesce(CAST($5 AS timestamptz), '-infinity')

-- name: dead_letter_ids
-- $1: queue, $2: channel, $3: kind, $4: reason, $5: since, $6: until, $7: error_type; null matches all.
-- $8: how many to look at, $9 and $10: died_at and id of the last one seen, $11: where the first page
-- said to end, $12: now. The oldest first, and whether each matches.
select id, died_at, ((CAST($2 AS text) is null or channel = CAST($2 AS text))
    and (CAST($3 AS text) is null or kind = CAST($3 AS text))
    and (CAST($4 AS text) is null or reason = CAST($4 AS text))
    and (CAST($7 AS text) is null or error_type = CAST($7 AS text))) as fits, end_at
from (
    select id, died_at, channel, kind, reason, error_type from "laneway".dead_letter_v1
    where (queue, died_at, id) > (CAST($1 AS text), greatest(CAST($5 AS timestamptz), CAST($9 AS timestamptz), '-infinity'), coalesce(CAST($10 AS bigint), 0))
        and (queue, died_at, id) < (CAST($1 AS text), 'infinity', 0)
    order by queue, died_at, id
    limit CAST($8 AS integer)
) d
cross join (
    select coalesce(CAST($11 AS timestamptz), CAST($12 AS timestamptz), clock_timestamp()) as end_at
) e
where died_at < coalesce(CAST($6 AS timestamptz), 'infinity') and died_at <= end_at
order by died_at, id

-- name: all_dead_letters
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: limit, $8 and $9: died_at and id of the last one seen, $10: how many to look at. The newest come first, each after the
-- place where the look ended: nowhere if there are no more, and one row without a letter if none matches. Of all queues.
select r.died_at, r.id, d.id, d.queue, d.channel, d.kind, d.key, d.priority, d.died_at, d.published_at, d.first_published_at,
    d.attempt, d.max_attempts, d.content_type, CAST(d.headers AS text) as headers, d.payload, d.reason, d.error_type, d.error,
    d.traceback
from (values (1)) one
left join lateral (
    select died_at, id from "laneway".dead_letter_v1
    where (died_at, id) < (least(CAST($8 AS timestamptz), CAST($5 AS timestamptz), 'infinity'),
            case when CAST($8 AS timestamptz) < coalesce(CAST($5 AS timestamptz), 'infinity') then CAST($9 AS bigint) else 0 end)
    order by died_at desc, id desc
    limit 1 offset CAST($10 AS integer) - 1
) r on r.died_at >= coalesce(CAST($4 AS timestamptz), '-infinity')
left join lateral (
    select w.* from (
        select * from "laneway".dead_letter_v1
        where (died_at, id) < (least(CAST($8 AS timestamptz), CAST($5 AS timestamptz), 'infinity'),
                case when CAST($8 AS timestamptz) < coalesce(CAST($5 AS timestamptz), 'infinity') then CAST($9 AS bigint) else 0 end)
        order by died_at desc, id desc
        limit CAST($10 AS integer)
    ) w
    where (CAST($1 AS text) is null or channel = CAST($1 AS text))
        and (CAST($2 AS text) is null or kind = CAST($2 AS text))
        and (CAST($3 AS text) is null or reason = CAST($3 AS text))
        and (CAST($6 AS text) is null or error_type = CAST($6 AS text))
        and died_at >= coalesce(CAST($4 AS timestamptz), '-infinity')
    order by died_at desc, id desc
    limit CAST($7 AS integer)
) d on true
order by d.died_at desc, d.id desc

-- name: count_all_dead_letters
-- $1: since, $2: until; null matches all. $3: where to stop counting.
select count(*) from (
    select id from "laneway".dead_letter_v1
    where died_at >= coalesce(CAST($1 AS timestamptz), '-infinity')
        and died_at < coalesce(CAST($2 AS timestamptz), 'infinity')
    limit CAST($3 AS integer)
) d

-- name: count_all_dead_letters_matching
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: how many to look at, the newest. How many match, and how many there were. Of all queues.
select count(*) filter (where (CAST($1 AS text) is null or channel = CAST($1 AS text))
    and (CAST($2 AS text) is null or kind = CAST($2 AS text))
    and (CAST($3 AS text) is null or reason = CAST($3 AS text))
    and (CAST($6 AS text) is null or error_type = CAST($6 AS text))), count(*)
from (
    select died_at, channel, kind, reason, error_type from "laneway".dead_letter_v1
    where (died_at, id) < (coalesce(CAST($5 AS timestamptz), 'infinity'), 0)
    order by died_at desc, id desc
    limit CAST($7 AS integer)
) d
where died_at >= coalesce(CAST($4 AS timestamptz), '-infinity')

-- name: all_dead_letter_ids
-- $1: channel, $2: kind, $3: reason, $4: since, $5: until, $6: error_type; null matches all.
-- $7: how many to look at, $8 and $9: died_at and id of the last one seen, $10: where the first page
-- said to end, $11: now. The oldest first, and whether each matches. Of all queues.
select id, died_at, ((CAST($1 AS text) is null or channel = CAST($1 AS text))
    and (CAST($2 AS text) is null or kind = CAST($2 AS text))
    and (CAST($3 AS text) is null or reason = CAST($3 AS text))
    and (CAST($6 AS text) is null or error_type = CAST($6 AS text))) as fits, end_at
from (
    select id, died_at, channel, kind, reason, error_type from "laneway".dead_letter_v1
    where (died_at, id) > (greatest(CAST($4 AS timestamptz), CAST($8 AS timestamptz), '-infinity'), coalesce(CAST($9 AS bigint), 0))
    order by died_at, id
    limit CAST($7 AS integer)
) d
cross join (
    select coalesce(CAST($10 AS timestamptz), CAST($11 AS timestamptz), clock_timestamp()) as end_at
) e
where died_at < coalesce(CAST($5 AS timestamptz), 'infinity') and died_at <= end_at
order by died_at, id

-- name: count_dead_letter_ids
-- $1: ids, $2: where to stop counting.
select count(*) from (
    select id from "laneway".dead_letter_v1 where id = any(CAST($1 AS bigint[])) limit CAST($2 AS integer)
) d

-- name: dead_letter_groups
-- $1: queue, $2: how many letters to look at, $3: how much of an error's text to compare.
select queue, kind, reason, error_type, left(error, CAST($3 AS integer)), count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, reason, error_type, error, died_at from "laneway".dead_letter_v1
    where (queue, died_at, id) >= (CAST($1 AS text), '-infinity', 0) and (queue, died_at, id) < (CAST($1 AS text), 'infinity', 0)
    order by queue desc, died_at desc, id desc
    limit CAST($2 AS integer)
) d
group by 1, 2, 3, 4, 5

-- name: all_dead_letter_groups
-- $1: how many letters to look at, $2: how much of an error's text to compare. Of all queues.
select queue, kind, reason, error_type, left(error, CAST($2 AS integer)), count(*), min(died_at), max(died_at), max(id)
from (
    select id, queue, kind, reason, error_type, error, died_at from "laneway".dead_letter_v1
    order by died_at desc, id desc
    limit CAST($1 AS integer)
) d
group by 1, 2, 3, 4, 5

-- name: redrive
-- $1: ids, $2: new max_attempts, $3: delay, $4: now.
select id
from "laneway".redrive_v1(
    CAST($1 AS bigint[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS timestamptz))

-- name: discard
-- $1: ids, $2: now.
select id from "laneway".discard_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz))

-- name: untold_dead_letters
-- $1: queues, $2: limit, $3: for how long, $4: of how long, $5: now.
select id, queue, channel, kind, key, priority, died_at, published_at, first_published_at, attempt, max_attempts,
    content_type, CAST(headers AS text) as headers, payload, reason, error_type, error, traceback
from "laneway".untold_dead_v1(
    CAST($1 AS text[]), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS interval), CAST($5 AS timestamptz))
order by died_at, id

-- name: dead_letters_told
-- $1: ids, $2: when they died.
select CAST("laneway".told_dead_v1(CAST($1 AS bigint[]), CAST($2 AS timestamptz[])) AS text)

-- name: add_operation
-- $1: action, $2: filter as JSON, $3: options as JSON, $4: how many, $5: actor, $6: now.
insert into "laneway".operation (action, wanted, options, total, actor, started_at)
select CAST($1 AS text), CAST(CAST($2 AS text) AS jsonb), CAST(CAST($3 AS text) AS jsonb),
    CAST($4 AS bigint), CAST($5 AS text), coalesce(CAST($6 AS timestamptz), clock_timestamp())
where "laneway".server_life_v1() > 0
returning id, action, CAST(wanted AS text), CAST(options AS text), total, done, state, actor, started_at, ended_at, error

-- name: step_operation
-- $1: id, or null for the first that runs, $2: limit, $3: now.
select id, action, CAST(wanted AS text), CAST(options AS text), total, done, state, actor, started_at, ended_at, error
from "laneway".step_operation_v1(CAST($1 AS bigint), CAST($2 AS integer), CAST($3 AS timestamptz))

-- name: end_operation
-- $1: id, $2: state, $3: error, $4: now. If it still runs.
update "laneway".operation set state = CAST($2 AS text), error = CAST($3 AS text),
    ended_at = coalesce(CAST($4 AS timestamptz), clock_timestamp())
where id = CAST($1 AS bigint) and state = 'running'
returning id

-- name: operations
-- $1: id, or null for all, $2: limit. The newest first.
select id, action, CAST(wanted AS text), CAST(options AS text), total, done, state, actor, started_at, ended_at, error
from "laneway".operation
where CAST($1 AS bigint) is null or id = CAST($1 AS bigint)
order by id desc
limit CAST($2 AS integer)
