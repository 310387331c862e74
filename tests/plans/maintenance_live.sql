-- Tables that are full of what maintenance must leave alone. series: i from 1.
insert into laneway.channel (id, queue, name, paused, paused_until, backlog)
select md5('c' || i)::uuid, 'q', 'c' || i, true, now() + interval '1 year', 1000000 from series;
insert into laneway.message (id, channel_id, queue, channel, expires_at, payload)
select i, md5('c' || 1 + i % 100)::uuid, 'q', 'c' || 1 + i % 100, now() + interval '1 year', 'p' from series;
insert into laneway.lease select i, 1, now() + interval '1 year', now(), md5('c' || 1 + i % 100)::uuid, false, 'w' from series;
insert into laneway.dedupe (queue, key, message_id, expires_at)
select 'q', 'a' || i, 0, case when i % 2 = 0 then now() + interval '1 year' end from series;
insert into laneway.done select 'q', 'a' || i, now() + interval '1 year' from series;
insert into laneway.result (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select i, now(), now() + interval '1 year', 'q', 'c', 'k', 'completed' from series;
insert into laneway.progress (message_id, fence, at) select i, 1, now() from series;
insert into laneway.dead_total select 'q', 'c' || i, 1 from series;
insert into laneway.worker select 'v' || i, 'w', 'h', 1, '1', '{}', '{}', 1, 0, false, now(), now() from series;
-- Listeners are few, and so are pauses and kinds.
insert into laneway.listener (until, id, read_to) select now() + interval '1 year', i, 0 from series where i <= 100;
insert into laneway.mail select 1 + i % 100, i, now(), 'published', '{}', '{}', '{}', '{}' from series;
insert into laneway.pause (queue, until, since, actor, reason)
select 'p' || i, now() + interval '1 year', now(), 'a', 'r' from series where i <= 100;
insert into laneway.audit (at, actor, source, action, target) select now(), 'a', 's', 'a', '{}' from series;
insert into laneway.minute (at, span, queue, kind)
select date_trunc('minute', now()) - i % 10000 * interval '1 minute', 1, 'q', 'k' || i from series;
insert into laneway.flow (id, xid, queue, name, created_at, keep, live)
select i, 0, 'q', 'f' || i, now(), '1 day', 1 from series;
insert into laneway.flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
select i, i, 0, 'ended', 'live', 'q', 'c', 'k' from series;
insert into laneway.flow_edge select i, i + 1, false, 0 from series;
-- Sets of limits are few; one for which another queue waits in many lanes, some of which have had more and stay.
insert into laneway.shared_limit (name) select 's' || i from series;
insert into laneway.limit_clock select 's' || i, array[now()], '{1}' from series where i <= 3;
insert into laneway.limit_queue select 'q', 's' || i from series where i <= 3;
insert into laneway.limit_lane select 's' || i, md5('1')::uuid, 'q', 5, true, now() from series where i <= 3;
insert into laneway.limit_clock values ('many', array[now()], '{1}');
insert into laneway.limit_lane select 'many', md5('c' || i)::uuid, 'q', 5, true, now() from series;
insert into laneway.limit_lane select 'many', md5('d' || i)::uuid, 'q', 9, false, '-infinity' from series;
insert into laneway.limit_wait select i, 'many', md5('c' || i)::uuid, 'k', 0, now() from series;
