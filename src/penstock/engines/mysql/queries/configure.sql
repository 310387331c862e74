-- $1: history, $2: history_days, $3: backoff_first, $4: backoff_most; null leaves it as it is.
update `penstock_setting` set history = coalesce($1, history), history_days = coalesce($2, history_days),
    backoff_first = coalesce($3, backoff_first), backoff_most = coalesce($4, backoff_most)
