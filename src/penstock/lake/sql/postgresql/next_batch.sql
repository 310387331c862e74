-- Where the next batch ends: so many rows on, or at the last row of a transaction before which all have ended.
with settled as (
    select h.xid, h.id
    from {schema}.history_v1 h
    where h.xid >= {from_xid} and (h.xid, h.id) > ({from_xid}, {from_id})
        and h.xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    order by h.xid, h.id
    limit {rows}
)
select s.xid, s.id from settled s order by s.xid desc, s.id desc limit 1
