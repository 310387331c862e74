-- $1: rows, in the order of their ids. Waits for another publish of the same key to end. On a
-- duplicate it takes the row's exclusive lock at once: two who waited for a third cannot deadlock.
insert into `penstock_dedupe` (id, queue, `key`, message_id) values $1...
on duplicate key update `penstock_dedupe`.message_id = `penstock_dedupe`.message_id
