-- How this connection keeps its promises.
select sqlite_version(), (select journal_mode from pragma_journal_mode),
    (select synchronous from pragma_synchronous), (select quick_check from pragma_quick_check(1))
