insert into {lake_file} (lake, path, day, batches, `rows`, checksum, size, staged, replaces)
values ({lake}, {path}, {day}, {batches_json}, {rows}, {checksum}, {size}, {staged}, {replaces_json})
