select s.history, s.history_days from {state} s
