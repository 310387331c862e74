-- $1: history, $2: history_days, $3: backoff_first, $4: backoff_most; null leaves it as it is.
update "penstock".setting set
    history = coalesce(CAST($1 AS text), history),
    history_days = coalesce(CAST($2 AS integer), history_days),
    backoff_first = coalesce(CAST($3 AS interval), backoff_first),
    backoff_most = coalesce(CAST($4 AS interval), backoff_most)
returning history, history_days, backoff_first, backoff_most
