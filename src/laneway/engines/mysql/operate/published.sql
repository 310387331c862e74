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

-- name: add_gaps
-- $1: rows.
insert into `laneway_gap` (first_id, last_id, noted_at, check_at) values $1...

-- name: gaps_to_check
-- $1: now, $2: limit.
select first_id, last_id, noted_at from `laneway_gap` force index (gap_check)
where check_at <= $1 order by check_at limit $2

-- name: published_in_gap
-- $1: first and $2: last id of the gap, $3: limit.
select * from (
    select id, first_published_at div 60000000 as at, queue, kind from `laneway_message` force index (primary)
    where id between $1 and $2
    union
    select id, first_published_at div 60000000, queue, kind from `laneway_dead` force index (primary)
    where id between $1 and $2
    union
    select message_id, first_published_at div 60000000, queue, kind from `laneway_history` force index (history_message)
    where message_id between $1 and $2 and first_published_at is not null
    limit $3) g

-- name: delete_gaps
-- $1: first ids.
delete t from $1:ids x straight_join `laneway_gap` t force index (primary) on t.first_id = x.id
