-- $1: id.
select payload from "penstock".message_v1 where id = CAST($1 AS bigint)
union all
select payload from "penstock".dead_letter_v1 where id = CAST($1 AS bigint)
