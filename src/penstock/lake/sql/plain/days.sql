-- The days of the history, and of each how much may not go yet: what is after the last batch, and what is
-- after the last that every lake holds for certain.
select h.ended_at - h.ended_at % 86400000000 as day, count(*) as n,
    sum(case when {upto_last} then 0 else 1 end) as unsynced,
    sum(case when {upto} or not ({upto_last}) then 0 else 1 end) as unverified, 0 as unread
from {history} h
group by h.ended_at - h.ended_at % 86400000000
order by 1
