-- Topics: which queues get a copy of what is published to a topic. A still table, read by publishers
-- only; channel and kind replace those of the message, null leaves them.
create table "penstock".subscription (
    topic text collate "C" not null,
    queue text collate "C" not null,
    channel text collate "C",
    kind text collate "C",
    primary key (topic, queue)
);
