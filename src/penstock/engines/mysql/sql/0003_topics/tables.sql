-- Topics: which queues get a copy of what is published to a topic. A still table, read by publishers
-- only; channel and kind replace those of the message, null leaves them.
create table if not exists `penstock_subscription` (
    topic varbinary(255) not null,
    queue varbinary(255) not null,
    channel varbinary(255),
    kind varbinary(255),
    primary key (topic, queue)
) engine = InnoDB;
