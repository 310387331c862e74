-- $1: the table's name.
select exists (select 1 from sqlite_master where type = 'table' and name = $1 collate nocase)
