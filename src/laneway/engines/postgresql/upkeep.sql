-- name: count
-- $1: how many rows, $2: now.
select counted, more from "laneway".count_v1(CAST($1 AS integer), CAST($2 AS timestamptz))

-- name: upkeep
-- $1: limit for each task, $2: the floor that the last upkeep answered, $3: in which life of the server, $4: now.
select ran, expired, buried, lapsed, tidied, partitioned, floor, life
from "laneway".upkeep_v1(CAST($1 AS integer), CAST($2 AS timestamptz), CAST($4 AS timestamptz), CAST($3 AS bigint))

-- name: decide_left
-- $1: now. How many nodes of flows had children left to decide.
select "laneway".decide_left_v1(CAST($1 AS timestamptz))
