-- How this connection keeps its promises, and how much of the file is empty.
select sqlite_version(), (select journal_mode from pragma_journal_mode),
    (select synchronous from pragma_synchronous), (select page_size from pragma_page_size),
    (select page_count from pragma_page_count), (select freelist_count from pragma_freelist_count)
