select n.queue, n.waiting, n.scheduled, n.leased, n.dead from {queue_numbers_v1} n order by n.queue
