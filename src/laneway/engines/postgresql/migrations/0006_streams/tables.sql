-- Streams: consumers that take messages in batches, and complete a batch as a whole once it is safe
-- elsewhere. Spark's are the first.

-- One row a stream. epoch rises whenever a new process takes the stream over; what an older one still
-- sends is refused. query is new whenever a stream begins without a checkpoint: batches are numbered
-- inside it, and a checkpoint of another query is refused.
create table "laneway".stream (
    name text collate "C" primary key,
    epoch bigint not null,
    query text not null,
    opened_at timestamptz not null default clock_timestamp()
);

-- What is in which batch: sealed when it is claimed, deleted when it is completed. So a batch can be
-- read again, exactly as it was, while its leases last.
create table "laneway".stream_item (
    stream text collate "C" not null,
    seq bigint not null,
    place integer not null,
    message_id bigint not null,
    fence bigint not null,
    primary key (stream, seq, place)
);
create index stream_item_lease on "laneway".stream_item (message_id, fence);
alter table "laneway".stream_item set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
