-- The next rows of a staging table, in the order in which they were brought.
select * from {table} where place > %(after)s order by place limit %(rows)s
