-- Where the next batch ends: so many rows on, or at the last one.
select s.xid, s.id
from (select {xid} as xid, h.id from {history} h where {after} order by {order} limit {rows}) s
order by s.xid desc, s.id desc limit 1
