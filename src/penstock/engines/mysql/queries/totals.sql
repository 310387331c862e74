-- $1: names of the tables of messages and of the history. The counters themselves: no row is read.
select table_name, auto_increment - 1 from information_schema.tables
where table_schema = database() and table_name in ($1...)
