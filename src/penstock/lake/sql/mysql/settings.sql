select s.history, s.history_days from {setting} s
