select table_name from information_schema.tables
where table_schema = database() and left(table_name, char_length(%(start)s)) = %(start)s
