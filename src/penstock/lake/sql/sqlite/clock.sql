select cast(round((julianday('now') - 2440587.5) * 86400000000) as integer) as now_at
