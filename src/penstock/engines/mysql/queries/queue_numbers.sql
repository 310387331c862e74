select queue, sum(waiting), sum(scheduled), sum(leased), sum(dead), count(*), min(oldest_due)
from `penstock_numbers` group by queue order by queue
