-- What is committed now, and below which number every transaction has ended.
select cast(s as text), cast(cast(pg_snapshot_xmin(s) as text) as bigint) from pg_current_snapshot() s
