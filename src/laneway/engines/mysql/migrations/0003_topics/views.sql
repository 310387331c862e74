create or replace view `laneway_subscription_v1` as
select convert(s.topic using utf8mb4) collate utf8mb4_bin as topic,
    convert(s.queue using utf8mb4) collate utf8mb4_bin as queue,
    convert(s.channel using utf8mb4) collate utf8mb4_bin as channel,
    convert(s.kind using utf8mb4) collate utf8mb4_bin as kind
from `laneway_subscription` s;
