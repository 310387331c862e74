insert into {schema}.lake_file (lake, path, day, batches, rows, checksum, size, staged, replaces)
values ({lake}, {path}, {day}, {batches}::bigint[], {rows}, {checksum}, {size}, {staged}, {replaces}::text[])
