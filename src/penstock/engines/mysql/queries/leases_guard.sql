-- $1: message ids in order, $2: a time that never comes. In a transaction that locks gaps, leases that are not
-- there get a row (of fence 0, which nobody has): the lock of a gap would keep all claims from adding theirs.
insert into `penstock_lease` (message_id, fence, until, claimed_at, channel_id, counted, worker)
select x.id, 0, $2, 0, '', false, '' from $1:ids x
where /*M! @@session.tx_isolation */ /*!80000 @@session.transaction_isolation */ in ('REPEATABLE-READ', 'SERIALIZABLE')
on duplicate key update fence = `penstock_lease`.fence
