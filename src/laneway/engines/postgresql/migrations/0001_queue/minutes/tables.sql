-- Figures per minute, and counts that upkeep keeps: looks read these where reading everything would take too
-- long. All of it is counted out of the history and the messages' ids, so that no verb writes anything more.

-- How many messages have not ended and how many dead letters there are, as of counting.as_of.
create table "laneway".live_count (
    queue text collate "C" not null,
    kind text collate "C" not null,
    live bigint not null,
    dead bigint not null,
    primary key (queue, kind)
) with (fillfactor = 50);

-- What happened, by minute (span 1) and by hour (span 60): see laneway.operations.Minute. A row without queue
-- and kind says that the depths of this minute were noted: who has none there had nothing.
create table "laneway".minute (
    at timestamptz not null,
    span smallint not null,
    queue text collate "C" not null,
    kind text collate "C" not null,
    published bigint not null default 0,
    started bigint not null default 0,
    completed bigint not null default 0,
    retried bigint not null default 0,
    failed bigint not null default 0,
    expired bigint not null default 0,
    deferred bigint not null default 0,
    given_back bigint not null default 0,
    cancelled bigint not null default 0,
    lapsed bigint not null default 0,
    redriven bigint not null default 0,
    discarded bigint not null default 0,
    dead bigint not null default 0,
    waits bigint[],
    runs bigint[],
    depth bigint,
    oldest timestamptz,
    exact boolean not null default true,
    primary key (span, at, queue, kind)
) with (fillfactor = 50);

-- How far was counted. A cycle: note the last message id (to_id) and then the own transaction's number (to_xid).
-- Once all transactions before that number have ended, every message up to to_id is published or never will be,
-- and every history row below to_xid is there. Then both are counted, up to exactly there, and as_of is the time of
-- the note.
create table "laneway".counting (
    single boolean primary key default true check (single),
    begun boolean not null default false,  -- the first count was made: live_count holds
    xid bigint not null default 0,         -- history rows up to (xid, id) are counted
    id bigint not null default 0,
    counted bigint not null default 0,     -- messages up to this id are counted
    width bigint not null default 4096,    -- how many transactions are read at once
    to_xid bigint,
    to_id bigint,
    to_history bigint,                     -- the last history id when to_xid was noted
    noted_at timestamptz,
    as_of timestamptz,
    depth_at timestamptz,
    history_changes bigint not null default 0,  -- of the setting, at this note
    changes_before bigint not null default 0    -- and at the one before
);
-- Nothing was published yet: all is counted from the beginning.
insert into "laneway".counting (begun, xid) values (true, 1);
