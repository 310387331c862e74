"""Tasks: functions that are called by publishing a message."""
