-- $1: topic, $2: queue.
delete from `penstock_subscription` where topic = $1 and queue = $2
