-- $1: queues, null for all; $2: now. Whether something is due, and how long until the next tick after
-- now (null: none).
select
    exists (
        select from "penstock".schedule s where s.look_at <= c.now
            and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))) as due,
    (
        select min(s.look_at) from "penstock".schedule s where s.look_at > c.now
            and (CAST($1 AS text[]) is null or s.queue = any(CAST($1 AS text[])))) - c.now as next_in
from (select coalesce(CAST($2 AS timestamptz), clock_timestamp()) as now offset 0) c
