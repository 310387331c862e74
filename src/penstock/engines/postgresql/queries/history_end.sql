-- Below this number every transaction has ended.
select CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
