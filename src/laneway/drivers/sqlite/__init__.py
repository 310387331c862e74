"""SQLite through the standard library's sqlite3: connections, runners, waiting for locks."""
