-- name: add_audit
-- $1: actor, $2: source, $3: action, $4: target as JSON, $5: how many, $6: now.
insert into "laneway".audit (at, actor, source, action, target, affected)
values (coalesce(CAST($6 AS timestamptz), clock_timestamp()), CAST($1 AS text), CAST($2 AS text),
    CAST($3 AS text), CAST(CAST($4 AS text) AS jsonb), CAST($5 AS bigint))
returning id

-- name: audit
-- $1: limit, $2: only those before this id. The newest first.
select id, at, actor, source, action, CAST(target AS text) as target, affected
from "laneway".audit
where id < coalesce(CAST($2 AS bigint), 9223372036854775807)
order by id desc
limit CAST($1 AS integer)
