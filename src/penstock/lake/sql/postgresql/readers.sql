select r.name, r.xid, r.id, r.seen_at from {schema}.history_reader r order by r.xid, r.id
