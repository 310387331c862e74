-- What handlers have already done, by a key of their choice; kept until a time. The id is computed
-- from queue and key. mark tells a session whether the row is the one that it inserted.
create table if not exists `laneway_done` (
    id binary(16) primary key,
    queue varbinary(255) not null,
    `key` varbinary(255) not null,
    keep_until bigint not null,
    mark bigint not null,
    key done_expiry (keep_until)
) engine = InnoDB;
