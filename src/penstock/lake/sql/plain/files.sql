select f.path, f.day, f.batches, f.`rows`, f.checksum, f.size, f.staged, f.replaces
from {lake_file} f
where f.lake = {lake}
order by f.path
