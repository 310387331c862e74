insert into {schema}.lake_file (lake, path, day, batches, rows, checksum, size)
values ({lake}, {path}, {day}, {batches}::bigint[], {rows}, {checksum}, {size})
on conflict (lake, path) do update set rows = excluded.rows, checksum = excluded.checksum, size = excluded.size
