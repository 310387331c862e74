-- Pauses of queues and kinds, the audit, bulk operations on dead letters.

-- A queue, or one kind of it (kinds: null for all), that starts nothing until a time (null: until it
-- is resumed).
create table if not exists `laneway_pause` (
    id bigint auto_increment primary key,
    queue varbinary(255) not null,
    kind varbinary(255),
    until bigint,
    since bigint not null,
    actor varbinary(1020) not null,
    reason varbinary(4000) not null
) engine = InnoDB;

-- How many pauses there were. Whoever pauses locks the row and counts; a claim that starts something shares
-- a lock on it until its end, if the number is still that of its scan. So a pause waits for the claims
-- that have looked before it, and those that have not yet started anything look again.
insert ignore into `laneway_turnstile` (name) values ('pause');

-- What operators did, in the transaction in which they did it.
create table if not exists `laneway_audit` (
    id bigint auto_increment primary key,
    at bigint not null,
    actor varbinary(1020) not null,
    source varbinary(16) not null,
    action varbinary(64) not null,
    target longblob not null,
    affected bigint
) engine = InnoDB;

-- Bulk redrives and discards. died_at and letter are the position of the last dead letter that was
-- looked at; only letters that died until started_at are taken. running: 1, or null when it has ended.
create table if not exists `laneway_operation` (
    id bigint auto_increment primary key,
    action varbinary(16) not null,
    wanted longblob not null,
    options longblob not null,
    total bigint,
    done bigint not null default 0,
    state varbinary(16) not null default 'running',
    running tinyint default 1,
    actor varbinary(1020) not null,
    started_at bigint not null,
    ended_at bigint,
    error blob,
    died_at bigint,
    letter bigint,
    key operation_running (running, id)
) engine = InnoDB;
