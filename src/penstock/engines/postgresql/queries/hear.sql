-- $1: listener, $2: limit, $3: for how long it is renewed, null if not; $4: now.
select alive, behind, at, what, ids, queues, channels, kinds
from "penstock".hear_v1(
    CAST($1 AS bigint), CAST($2 AS integer), CAST($3 AS interval), CAST($4 AS timestamptz))
