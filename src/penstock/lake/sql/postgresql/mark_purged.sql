-- A batch is purged when none of its rows is left.
update {schema}.lake_commit c set state = 'purged', purged_at = clock_timestamp()
where c.lake = {lake} and c.state = 'verified'
    and not exists (
        select from {schema}.history_v1 h
        where h.xid >= c.from_xid and (h.xid, h.id) > (c.from_xid, c.from_id)
            and h.xid <= c.to_xid and (h.xid, h.id) <= (c.to_xid, c.to_id))
