select history, history_days, backoff_first, backoff_most from `penstock_setting`
