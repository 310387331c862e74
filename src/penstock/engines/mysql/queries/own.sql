-- $1: rows in the order of their ids. Adds what is missing and locks all: whoever owned them before
-- has committed.
insert into `penstock_channel` (id, queue, name) values $1...
on duplicate key update queue = `penstock_channel`.queue
