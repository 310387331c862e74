-- $1: id, queue, key, keep_until and mark, as one row. Waits for another transaction that asks for
-- the same key.
insert into `penstock_done` (id, queue, `key`, keep_until, mark) values $1...
on duplicate key update mark = `penstock_done`.mark
