-- Topics: which queues get a copy of what is published to a topic. channel and kind replace those of
-- the message, null leaves them.
create table "penstock_subscription" (
    topic text not null,
    queue text not null,
    channel text,
    kind text,
    primary key (topic, queue)
) without rowid;
