replace into {lake_file} (lake, path, day, batches, `rows`, checksum, size)
values ({lake}, {path}, {day}, {batches_json}, {rows}, {checksum}, {size})
