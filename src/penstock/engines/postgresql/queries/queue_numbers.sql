-- All queues that hold anything.
select queue, waiting, scheduled, leased, dead, channels, oldest_due
from "penstock".queue_numbers_v1
order by queue
