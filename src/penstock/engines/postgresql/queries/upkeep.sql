-- $1: how many at most of each kind, $2: floor of the last upkeep, $3: now.
select ran, expired, buried, lapsed, tidied, partitioned, floor
from "penstock".upkeep_v1(CAST($1 AS integer), CAST($2 AS timestamptz), CAST($3 AS timestamptz))
