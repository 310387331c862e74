-- Topics: which queues get a copy of what is published to a topic. A static table, read by publishers
-- only; channel and kind replace those of the message, null leaves them.
create table "laneway".subscription (
    topic text collate "C" not null,
    queue text collate "C" not null,
    channel text collate "C",
    kind text collate "C",
    primary key (topic, queue)
);
