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
