-- Streams of history are read from PostgreSQL only.
select null as name, null as xid, null as id, null as seen_at from {lake_commit} c where c.batch < 0
