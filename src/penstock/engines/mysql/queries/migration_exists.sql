-- $1: name of the table.
select count(*) from information_schema.tables where table_schema = database() and table_name = $1
