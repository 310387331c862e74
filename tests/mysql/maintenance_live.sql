-- Tables that are full of what maintenance must leave alone. series: i from 1; @n: how many, @now: microseconds.
update `laneway_fold` set message_id = 100 * @n, seen = 100 * @n, settled = 2, stamp = 1, seen_at = @now, known = 1;
update `laneway_turnstile` set n = 1 where name = 'settle';
insert into `laneway_channel` (id, queue, name, paused, paused_until, backlog, gated)
select unhex(substr(sha2(concat('1:qc', i), 256), 1, 32)), 'q', concat('c', i), 1, @now + 1e12, 1000000, 1 from series;
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
    queue, channel, kind, content_type, payload)
select i, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, 0, 0, @now + 1e12, 20, 0, 'q',
    concat('c', 1 + i % 100), 'k', 't', 'p' from series;
insert into `laneway_expiry` select i, @now + 1e12 from series;
insert into `laneway_lease` select i, 1, @now + 1e12, 0, x'', 0, 'w' from series;
insert into `laneway_wake` (at, channel_id, due, message_id, n, priority, ahead, queue, channel)
select 0, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, i, 1, 0, 0, 'q', concat('c', 1 + i % 100) from series;
insert into `laneway_dedupe` (id, queue, `key`, message_id, expires_at)
select unhex(md5(i)), 'q', concat('k', i), 0, if(i % 2, null, @now + 1e12) from series;
insert into `laneway_done` select unhex(md5(i)), 'q', concat('k', i), @now + 1e12, 0 from series;
insert into `laneway_history` (settled, message_id, attempt, ended_at, terminal, dead, queue, channel, kind, outcome)
select 1, i, 1, @now, 1, 0, 'q', 'c', 'k', 'completed' from series;
insert into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select i, 0, @now + 1e12, 'q', 'c', 'k', 'completed' from series;
insert into `laneway_progress` (message_id, fence, at) select i, 1, @now from series;
insert into `laneway_dead` (id, died_at, published_at, first_published_at, attempt, max_attempts, priority, queue, channel,
    kind, content_type, reason, payload)
select 50 * @n + i, 0, 0, 0, 1, 1, 0, 'q', 'c', 'k', 't', 'r', 'p' from series;
insert into `laneway_dead_sum` select unhex(md5(i)), 'q', concat('c', i), 1 from series;
insert into `laneway_worker` select concat('v', i), 'w', 'h', 1, '1', '[]', '[]', 1, 0, 0, 0, @now from series;
-- Listeners are few, and so are pauses and kinds.
insert into `laneway_listener` (id, until, read_to) select i, @now + 1e12, 0 from series where i <= 100;
insert into `laneway_mail` (listener_id, at, what, events) select 1 + i % 100, 0, 'published', '[]' from series;
insert into `laneway_pause` (queue, until, since, actor, reason)
select concat('p', i), @now + 1e12, 0, 'a', 'r' from series where i <= 100;
insert into `laneway_kind_count` select 'q', concat('k', i), 1, 0 from series where i <= 100;
insert into `laneway_audit` (at, actor, source, action, target) select @now, 'a', 's', 'a', 't' from series;
insert into `laneway_minute` (span, at, queue, kind) select 1, @now div 60000000 - i % 10000, 'q', concat('k', i) from series;
insert into `laneway_gap` select 10 * @n + 2 * i, 10 * @n + 2 * i, @now, @now + 1e12 from series;
insert into `laneway_lake_commit`
select 'lake', i, i, 0, i + 1, 0, 1, '', 0, 0, 'purged', 0 from series;
-- Flows.
insert into `laneway_flow` (id, queue, name, created_at, keep, live) select i, 'q', concat('f', i), 0, 1, 1 from series;
insert into `laneway_flow_node` (id, flow_id, pending, run_when, state, queue, channel, kind)
select i, i, 0, 'ended', 'live', 'q', 'c', 'k' from series;
insert into `laneway_flow_edge` select i, 0, i + 1, 0, 0 from series;
-- Shared limits: a set for each row, and one for which another queue waits in as many lanes.
insert into `laneway_shared_limit` (name) select concat('s', i) from series;
insert into `laneway_limit_queue` select 'q', concat('s', i) from series;
insert into `laneway_limit_clock` select concat('s', i), '', 0 from series;
insert into `laneway_limit_lane` select concat('s', i), unhex(md5(1)), 'q', 5, 1, 0 from series;
insert into `laneway_limit_lane` select 'many', unhex(md5(i)), 'q', 5, 1, 0 from series;
-- What has had more than those that wait stays.
insert into `laneway_limit_lane` select 'many', unhex(md5(@n + i)), 'q', 9, 0, 0 from series;
insert into `laneway_limit_wait` select i, 'many', unhex(md5(i)), 'k', 0, 0, null, 0 from series;
