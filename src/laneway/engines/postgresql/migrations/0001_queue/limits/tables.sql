-- Shared limits: docs/decisions/0021-shared-limits.md.
--
-- One row a limit; named by a message and never set: a row without limits. Whoever holds its lock decides who
-- starts behind it. tat: as in token. rest_until: nothing starts before (a handler raised Throttled, or its breaker is
-- open). concurrency: the number in force, which is all that claims read; set_concurrency: what was set.
--
-- adapted: the number that it has found between adapt_min and adapt_max; successes: how many of the next round it has.
-- opened_at: since when the breaker is open, open_until: when it lets the next single one start. slots: what ended
-- lately, by tenths of the breaker's window. round: counts decreases and openings; what started in a round before
-- adapt_round says nothing about the number, before breaker_round nothing about the breaker.
--
-- pass: of the last lane of any set that started something behind it, noted once a second: where a new set begins.
create table "laneway".shared_limit (
    name text collate "C" primary key,
    concurrency bigint check (concurrency >= 1),
    rate double precision check (rate between 1e-6 and 1e9),
    burst bigint check (burst >= 1),
    tat timestamptz,
    rest_until timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    set_concurrency bigint check (set_concurrency >= 1),
    adapt_min bigint check (adapt_min >= 1),
    adapt_max bigint check (adapt_max >= adapt_min),
    adapted bigint check (adapted between adapt_min and adapt_max),
    successes bigint not null default 0,
    breaker_failures double precision check (breaker_failures > 0 and breaker_failures <= 1),
    breaker_window interval,
    breaker_minimum bigint check (breaker_minimum >= 1),
    breaker_pause interval,
    opened_at timestamptz,
    open_until timestamptz,
    slots bigint[],
    slots_ended bigint[],
    slots_failed bigint[],
    round bigint not null default 0,
    adapt_round bigint not null default 0,
    breaker_round bigint not null default 0,
    pass double precision not null default 0,
    check ((rate is null) = (burst is null)),
    check ((adapt_min is null) = (adapted is null)),
    check ((opened_at is null) = (open_until is null) and (opened_at is null or breaker_window is not null))
);
-- Those that want to know how what ran behind them ended.
create index shared_limit_controlled on "laneway".shared_limit (name)
    where adapt_min is not null or breaker_window is not null;

-- Who runs behind a limit. A row counts while its lease exists; whoever ends the lease does not look here, and
-- the next who needs the number deletes the row. outcome: how it ended or is about to end, of limits that adapt or have
-- a breaker: 1 completed, 2 failed, 3 timed out, 4 throttled, 5 expired; null: nothing is known. round: of the limit,
-- when it started.
create table "laneway".limit_lease (
    name text collate "C" not null,
    message_id bigint not null,
    fence bigint not null,
    round bigint not null default 0,
    outcome smallint check (outcome between 1 and 5),
    ended_at timestamptz,
    primary key (name, message_id)
);

-- A channel that starts or waits behind a set of limits (their names, sorted, with commas between). pass: how much it has
-- had, by weight: the lowest is next. used: when it began to wait or started something, or when upkeep last saw that it
-- has to stay. A row stays for a minute after its last message, so that nobody gains by coming back.
create table "laneway".limit_lane (
    limits text collate "C" not null,
    channel_id uuid not null,
    queue text collate "C" not null,
    pass double precision not null,
    waiting boolean not null,
    used timestamptz not null,
    primary key (limits, channel_id)
);
create index limit_lane_order on "laneway".limit_lane (limits, pass, channel_id) where waiting;
create index limit_lane_channel on "laneway".limit_lane (channel_id) where waiting;
-- Lanes in which nothing waits, for upkeep.
create index limit_lane_idle on "laneway".limit_lane (limits, used) where not waiting;

-- How far a set of limits has come: the pass of what started, at times of the last minute, both rising. A channel whose
-- first message was due at one of them, and which is found later, begins where the others were then (limit_pass_v1).
create table "laneway".limit_clock (
    limits text collate "C" primary key,
    times timestamptz[] not null,
    passes double precision[] not null
);

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
