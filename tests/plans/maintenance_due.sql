-- Rows for everything that maintenance has to do, one of each kind for each row of "series". The tables are full already.
insert into laneway.channel (id, queue, name, closing) select md5('x' || i)::uuid, 'q', 'x' || i, true from series;
insert into laneway.token (channel_id, version, n, leased, credit, skips, queue, pri, due, mid)
select md5('x' || i)::uuid, 1, 0, 0, 0, 0, 'q', '{}', '{}', '{}' from series;
insert into laneway.channel (id, queue, name, paused, paused_until)
select md5('y' || i)::uuid, 'q', 'y' || i, true, now() - interval '1 year' from series;
-- Leases that ran out, some of messages that have used up their attempts; and messages that have lapsed.
insert into laneway.message (id, channel_id, queue, channel, max_attempts, payload)
select 100000 + i, md5('c' || 1 + i % 100)::uuid, 'q', 'c' || 1 + i % 100, case when i % 100 = 0 then 1 else 20 end, 'p' from series;
insert into laneway.lease
select 100000 + i, 1, now() - interval '1 year', now(), md5('c' || 1 + i % 100)::uuid, false, 'w' from series;
insert into laneway.message (id, channel_id, queue, channel, expires_at, payload)
select 200000 + i, md5('c' || 1 + i % 100)::uuid, 'q', 'c' || 1 + i % 100, now() - interval '1 year', 'p' from series;
-- Strays are few: they have no index.
insert into laneway.stray select 300000 + i, 1, md5('c' || i)::uuid, 'q', 'c' || i from series where i <= 300;
insert into laneway.stray select i, 1, md5('c' || i)::uuid, 'q', 'c' || i from series where i <= 10;

insert into laneway.dedupe (queue, key, message_id, expires_at)
select 'q', 'k' || i, 0, now() - interval '1 year' from series;
insert into laneway.done select 'q', 'k' || i, now() - interval '1 year' from series;
insert into laneway.dead_count select 'q', 'c' || i, 1 from series;
insert into laneway.result (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select 100000 + i, now(), now() - interval '1 year', 'q', 'c', 'k', 'completed' from series;
insert into laneway.progress (message_id, fence, at) select 200000 + i, 1, now() - interval '1 year' from series;
insert into laneway.worker
select 'w' || i, 'w', 'h', 1, '1', '{}', '{}', 1, 0, false, now(), now() - interval '1 year' from series;
insert into laneway.cancel_request select 200000 + i, 1, 'w', now() from series;
insert into laneway.listener (until, id, read_to) select now() - interval '1 year', 100 + i, 0 from series where i <= 100;
insert into laneway.mail select 101 + i % 100, 100000 + i, now(), 'published', '{}', '{}', '{}', '{}' from series;
insert into laneway.pause (queue, until, since, actor, reason)
select 'o' || i, now() - interval '1 year', now(), 'a', 'r' from series where i <= 100;
insert into laneway.audit (id, at, actor, source, action, target) overriding system value
select i - 100000, now() - interval '1 year', 'a', 's', 'a', '{}' from series;
insert into laneway.minute (at, span, queue, kind) select now() - interval '1 year' - i * interval '1 minute', 1, 'q', 'k' from series;
insert into laneway.minute (at, span, queue, kind) select now() - interval '1 year' - i * interval '1 hour', 60, 'q', 'k' from series;

-- Flows that are no longer kept, counts of one flow, one node with many edges, and children that are undecided: few, because
-- a step decides 5,000 whatever its limit is.
insert into laneway.flow (id, xid, queue, name, created_at, keep, ended_at, expires_at)
select 100000 + i, 0, 'q', 'g' || i, now(), '1 day', now(), now() - interval '1 year' from series;
insert into laneway.flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
select 100000 + i, 100001 + i / 100, 0, 'ended', 'completed', 'q', 'c', 'k' from series;
insert into laneway.flow_edge select 100001, 200000 + i, false, 0 from series;
insert into laneway.flow_count (flow_id, completed) select 1, 1 from series;
insert into laneway.flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
select 300000 + i, 2, 1, 'ended', case when i % 2 = 0 then 'completed' else 'skipped' end, 'q', 'c', 'k' from series
where i <= 400;
insert into laneway.flow_edge select 300000 + i, 300001 + i, false, 0 from series where i % 2 = 0 and i <= 400;
insert into laneway.flow_undecided select 300000 + i, false, true, false, 0, 2 from series where i % 2 = 0 and i <= 400;

-- Shared limits: sets that nothing waits for, lanes in which nothing waits, and what was made due.
insert into laneway.limit_clock select 't' || i, array[now() - interval '1 year'], '{1}' from series where i <= 3;
insert into laneway.limit_lane select 't1', md5('c' || i)::uuid, 'q', 5, false, '-infinity' from series;
insert into laneway.limit_wait select 100000 + i, 'many', md5('c' || i)::uuid, 'k', 0, now(), now() - interval '1 year' from series;

-- What was not counted yet.
insert into laneway.history (message_id, attempt, first_published_at, published_at, due, ended_at, terminal, dead, queue, channel, kind, outcome)
select 400000 + i, 1, now(), now(), now(), now(), true, false, 'q', 'c', 'k', 'completed' from series;
