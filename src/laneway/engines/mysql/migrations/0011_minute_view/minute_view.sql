-- What happened by minute, for people and dashboards; laneway.operations.Minute says what the columns mean.
-- waits and runs are JSON arrays.
create or replace view `laneway_minute_v1` as
select timestampadd(minute, m.at, timestamp '1970-01-01 00:00:00') as at,
    convert(m.queue using utf8mb4) collate utf8mb4_bin as queue, convert(m.kind using utf8mb4) collate utf8mb4_bin as kind,
    m.published, m.started, m.completed, m.retried, m.failed, m.expired, m.deferred, m.given_back, m.cancelled,
    m.lapsed, m.redriven, m.discarded, m.dead,
    json_array(m.w0, m.w1, m.w2, m.w3, m.w4, m.w5, m.w6, m.w7, m.w8, m.w9, m.w10, m.w11, m.w12) as waits,
    json_array(m.r0, m.r1, m.r2, m.r3, m.r4, m.r5, m.r6, m.r7, m.r8, m.r9, m.r10, m.r11, m.r12) as runs,
    m.depth, timestampadd(microsecond, m.oldest_due, timestamp '1970-01-01 00:00:00') as oldest,
    not m.partial as exact
from `laneway_minute` m where m.span = 1;
