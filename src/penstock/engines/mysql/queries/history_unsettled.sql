-- $1: how many. A plain read: what an open transaction has written is not waited for.
select id from `penstock_history` force index (history_settled) where settled is null order by id limit $1
