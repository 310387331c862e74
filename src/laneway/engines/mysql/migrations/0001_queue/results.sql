-- What handlers returned, and how messages ended whose results were to be kept, until a time. A message says for
-- how long in its header laneway-keep-result, in seconds. Messages without it have nothing to do with this table.
create table if not exists `laneway_result` (
    message_id bigint primary key,
    ended_at bigint not null,
    expires_at bigint not null,
    queue varbinary(255) not null,
    channel varbinary(255) not null,
    kind varbinary(255) not null,
    outcome varbinary(255) not null,
    reason longblob,
    error_type longblob,
    error longblob,
    content_type varbinary(255),
    payload longblob,
    key result_expiry (expires_at)
) engine = InnoDB row_format = dynamic;

-- How far handlers say they are. A row holds for the lease with this fence; upkeep deletes those whose lease is gone,
-- so that ending a lease costs nothing more.
create table if not exists `laneway_progress` (
    message_id bigint primary key,
    fence bigint not null,
    at bigint not null,
    share double,
    note longblob,
    key progress_at (at)
) engine = InnoDB;
