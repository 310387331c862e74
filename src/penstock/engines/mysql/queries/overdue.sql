-- $1: from which time on, $2: now, $3: how many. Leases that ran out.
select message_id, fence, until from `penstock_lease` force index (lease_until)
where until >= $1 and until <= $2 order by until limit $3
