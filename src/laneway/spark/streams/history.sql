-- name: history_last
-- The last settled row after a position. Every transaction below $settled has ended, so no row can
-- appear before it any more.
select h.xid, h.id
from "laneway".history_v1 h
where $filters:sql
    and h.xid >= $from_xid and (h.xid, h.id) > ($from_xid, $from_id) and h.xid < $settled
order by h.xid desc, h.id desc
limit 1
