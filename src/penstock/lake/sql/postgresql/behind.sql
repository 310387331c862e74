-- How much is not in the lake yet, and how much of it nobody may read yet.
select count(*), min(h.ended_at), count(*) filter (where h.xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
from {schema}.history_v1 h
where h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
