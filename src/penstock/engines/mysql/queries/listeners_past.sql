-- $1: a time. Listeners that were gone by then.
select id from `penstock_listener` force index (listener_until) where until <= $1
