-- Topics: which queues get a copy of what is published to a topic. Only publishers read it. channel
-- and kind replace those of the message; null keeps them.
create table if not exists `laneway_subscription` (
    topic varbinary(255) not null,
    queue varbinary(255) not null,
    channel varbinary(255),
    kind varbinary(255),
    primary key (topic, queue)
) engine = InnoDB;
