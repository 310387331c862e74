-- name: copy_settings
set local timezone = 'UTC'; set local datestyle = 'ISO'; set local bytea_output = 'hex'

-- name: copy_out
copy ($query:sql) to stdout (format csv, encoding 'UTF8')
