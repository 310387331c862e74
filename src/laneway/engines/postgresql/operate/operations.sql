-- name: add_operation
-- $1: action, $2: filter as JSON, $3: options as JSON, $4: how many, $5: actor, $6: now.
insert into "laneway".operation (action, wanted, options, total, actor, started_at)
values (CAST($1 AS text), CAST(CAST($2 AS text) AS jsonb), CAST(CAST($3 AS text) AS jsonb),
    CAST($4 AS bigint), CAST($5 AS text), coalesce(CAST($6 AS timestamptz), clock_timestamp()))
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
