-- What is in a schema.

-- name: shape
-- All that begins with the prefix, each with what it was created by, and the columns of the tables.
-- $1: prefix with its underscore, $2: its length.
select type, name, '', 0, sql from sqlite_master where substr(name, 1, $2) = $1
union all
select 'column', m.name, c.name, c.pk, null
from sqlite_master as m join pragma_table_info(m.name) as c
where m.type = 'table' and substr(m.name, 1, $2) = $1
