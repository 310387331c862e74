-- Subscriptions: which queues get a copy of what is published to a topic. channel and kind replace
-- those of the message; null keeps them.
create table "laneway_subscription" (
    topic text not null,
    queue text not null,
    channel text,
    kind text,
    primary key (topic, queue)
) without rowid;

create view "laneway_subscription_v1" as
select topic, queue, channel, kind from "laneway_subscription";
