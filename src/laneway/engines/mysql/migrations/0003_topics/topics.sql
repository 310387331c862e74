-- Topics: which queues get a copy of what is published to a topic. Only publishers read it. channel
-- and kind replace those of the message; null keeps them.
create table if not exists `laneway_subscription` (
    topic varbinary(255) not null,
    queue varbinary(255) not null,
    channel varbinary(255),
    kind varbinary(255),
    primary key (topic, queue)
) engine = InnoDB;

create or replace view `laneway_subscription_v1` as
select convert(s.topic using utf8mb4) collate utf8mb4_bin as topic,
    convert(s.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(s.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(s.kind using utf8mb4) collate utf8mb4_bin as kind
from `laneway_subscription` s;
