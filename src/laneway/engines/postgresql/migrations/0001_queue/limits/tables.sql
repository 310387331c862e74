-- Shared limits: docs/decisions/0021-shared-limits.md.
--
-- One row a limit; named by a message and never set: a row without limits. Whoever holds its lock decides who
-- starts behind it. tat: as in token. rest_until: nothing starts before (a handler raised Throttled).
create table "laneway".shared_limit (
    name text collate "C" primary key,
    concurrency bigint check (concurrency >= 1),
    rate double precision check (rate between 1e-6 and 1e9),
    burst bigint check (burst >= 1),
    tat timestamptz,
    rest_until timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    check ((rate is null) = (burst is null))
);

-- Who runs behind a limit. A row counts while its lease exists; whoever ends the lease does not look here, and
-- the next who needs the number deletes the row.
create table "laneway".limit_lease (
    name text collate "C" not null,
    message_id bigint not null,
    fence bigint not null,
    primary key (name, message_id)
);

-- A channel that waits for a set of limits (their names, sorted, with commas between). pass: how much it has had, by weight:
-- the lowest is next. A row stays for a while after its last message, so that nobody gains by coming back.
create table "laneway".limit_lane (
    limits text collate "C" not null,
    channel_id uuid not null,
    queue text collate "C" not null,
    pass double precision not null,
    waiting boolean not null,
    primary key (limits, channel_id)
);
create index limit_lane_order on "laneway".limit_lane (limits, pass, channel_id) where waiting;
create index limit_lane_channel on "laneway".limit_lane (channel_id) where waiting;
-- Lanes in which nothing waits, for upkeep.
create index limit_lane_idle on "laneway".limit_lane (limits, pass) where not waiting;

-- A message that waits for its limits: put back for an hour, and made due when its turn comes (released). What
-- is due after that hour is claimed and looked at anew, so nothing is lost with a row of this table.
create table "laneway".limit_wait (
    message_id bigint primary key,
    limits text collate "C" not null,
    channel_id uuid not null,
    kind text collate "C" not null,
    priority smallint not null,
    due timestamptz not null,
    released timestamptz,
    charge double precision not null default 0
);
create index limit_wait_order on "laneway".limit_wait (limits, channel_id, priority desc, due, message_id)
    where released is null;
create index limit_wait_released on "laneway".limit_wait (released) where released is not null;

-- Which sets of limits messages of a queue wait for. It has no index: while there is none the table has no pages,
-- so that the look of a claim reads none.
create table "laneway".limit_queue (
    queue text collate "C" not null,
    limits text collate "C" not null
);
