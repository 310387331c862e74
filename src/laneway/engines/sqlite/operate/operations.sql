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
