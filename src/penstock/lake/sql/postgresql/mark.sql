update {schema}.lake_commit c
set state = {state},
    written_at = case when {state} = 'written' then clock_timestamp() else c.written_at end,
    verified_at = case when {state} = 'verified' then clock_timestamp() else c.verified_at end,
    purged_at = case when {state} = 'purged' then clock_timestamp() else c.purged_at end
where c.lake = {lake} and c.batch = {batch} and c.state = {before}
