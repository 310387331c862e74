-- How much is not in the lake yet, and how much of it has no place in the order yet.
select count(*) as n, min(h.ended_at) as since_at, sum({unsettled}) as unsettled
from {history} h
where ({after}) or {unsettled}
