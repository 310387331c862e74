select 'SQLite ' || sqlite_version()
