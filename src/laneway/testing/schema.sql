-- name: empty_table
delete from $table:table
