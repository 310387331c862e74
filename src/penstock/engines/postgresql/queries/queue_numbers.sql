-- All queues that hold anything.
select queue, waiting, scheduled, leased, dead, channels,
    case when isfinite(oldest_due) then oldest_due end
from "penstock".queue_numbers_v1
order by queue
