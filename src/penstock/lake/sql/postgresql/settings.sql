select s.history, s.history_days from {schema}.setting s
