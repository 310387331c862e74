-- Rows for everything that maintenance has to do, one of each kind for each row of "series"; @n: how many, @now:
-- microseconds, @old: long ago. The tables are full already.
update `laneway_fold` set message_id = 2 * @n;
insert into `laneway_fence` (id) select i from series;
insert into `laneway_fence` (id) select @n + i from series;
insert into `laneway_history` (id, settled, message_id, attempt, ended_at, terminal, dead, queue, channel, kind, outcome)
select i - 2 * @n, 1, 30 * @n + i, 1, @old + i, 1, 0, 'q', 'c', 'k', 'completed' from series;
-- What has no stamp yet, and what is not counted.
insert into `laneway_history` (settled, message_id, attempt, first_published_at, ended_at, terminal, dead, queue, channel, kind, outcome)
select if(i % 2, null, 2), 2 * @n + i, 1, 0, @now, 1, 0, 'q', 'c', 'k', 'completed' from series;
update `laneway_turnstile` set n = 3 where name = 'settle';
update `laneway_fold` set stamp = 3, seen_at = @now - 120000000;

-- Channels that are removed and empty, or that are resumed.
insert into `laneway_channel` (id, queue, name, closing, gated)
select unhex(substr(sha2(concat('1:qx', i), 256), 1, 32)), 'q', concat('x', i), 1, 1 from series;
insert into `laneway_wake` (at, channel_id, due, message_id, n, priority, ahead, queue, channel)
select 0, unhex(substr(sha2(concat('1:qx', 1 + i % 1000), 256), 1, 32)), 0, i, 0, 0, 0, 'q', concat('x', 1 + i % 1000) from series;
insert into `laneway_kind_wake` (at, channel_id, due, message_id, n, priority, ahead, queue, channel, lane)
select 0, unhex(substr(sha2(concat('1:qx', 1 + i % 1000), 256), 1, 32)), 0, i, 0, 0, 0, 'q', concat('x', 1 + i % 1000), '-' from series;
insert into `laneway_channel` (id, queue, name, paused, paused_until)
select unhex(substr(sha2(concat('1:qy', i), 256), 1, 32)), 'q', concat('y', i), 1, @old from series;
-- Leases that ran out, some of messages that have used up their attempts; and messages that have lapsed.
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, max_attempts, priority,
    queue, channel, kind, `key`, content_type, payload)
select 3 * @n + i, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, 0, 0, if(i % 10, 20, 1), 0, 'q',
    concat('c', 1 + i % 100), 'k', if(i % 10, null, concat('dying', i)), 't', 'p' from series;
insert into `laneway_lease` select 3 * @n + i, 1, @old + i, 0, x'', 0, 'w' from series;
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, expires_at, max_attempts, priority,
    queue, channel, kind, content_type, payload)
select 4 * @n + i, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, 0, 0, @old, 20, 0, 'q',
    concat('c', 1 + i % 100), 'k', 't', 'p' from series;
insert into `laneway_expiry` select 4 * @n + i, @old from series;
insert into `laneway_stray` select 5 * @n + i, 1, unhex(substr(sha2(concat('1:qc', i), 256), 1, 32)), 'q', concat('c', i) from series;

insert into `laneway_dedupe` (id, queue, `key`, message_id, expires_at)
select unhex(md5(@n + i)), 'q', concat('k', @n + i), 0, @old from series;
insert into `laneway_done` select unhex(md5(@n + i)), 'q', concat('k', @n + i), @old, 0 from series;
insert into `laneway_dead_count` (queue, channel, n) select 'q', concat('c', i), 1 from series;
insert into `laneway_result` (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select @n + i, 0, @old, 'q', 'c', 'k', 'completed' from series;
insert into `laneway_progress` (message_id, fence, at) select @n + i, 1, @old from series;
insert into `laneway_worker` select concat('w', i), 'w', 'h', 1, '1', '[]', '[]', 1, 0, 0, 0, @old from series;
insert into `laneway_cancel_request` select 6 * @n + i, 1, 'w', 0 from series;
insert into `laneway_listener` (id, until, read_to) select 100 + i, @old, 0 from series where i <= 100;
insert into `laneway_mail` (listener_id, at, what, events) select 101 + i % 100, 0, 'published', '[]' from series;
insert into `laneway_pause` (queue, until, since, actor, reason) select concat('o', i), @old, 0, 'a', 'r' from series where i <= 100;
insert into `laneway_audit` (id, at, actor, source, action, target) select i - 2 * @n, @old, 'a', 's', 'a', 't' from series;
insert into `laneway_minute` (span, at, queue, kind) select 1, i, 'q', 'k' from series;
insert into `laneway_minute` (span, at, queue, kind) select 60, i, 'q', 'k' from series;

-- Gaps to look at: many small ones, of which released nodes fill some, and one in which many messages appeared.
insert into `laneway_gap` select 20 * @n + 2 * i, 20 * @n + 2 * i, @now - 60000000, if(i % 10, @now + 1e12, @old) from series;
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, max_attempts, priority,
    queue, channel, kind, content_type, payload)
select 20 * @n + 2 * i, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, 0, 0, 20, 0, 'q',
    concat('c', 1 + i % 100), 'k', 't', 'p' from series;
insert into `laneway_flow_released` (n, ids) select 1, concat('[', 20 * @n + 2 * i, ']') from series;
insert into `laneway_gap` select 40 * @n, 50 * @n, @now - 60000000, @old - 1;
insert into `laneway_message` (id, channel_id, due, published_at, first_published_at, max_attempts, priority,
    queue, channel, kind, content_type, payload)
select 40 * @n + i, unhex(substr(sha2(concat('1:qc', 1 + i % 100), 256), 1, 32)), 0, 0, 0, 20, 0, 'q',
    concat('c', 1 + i % 100), 'k', 't', 'p' from series;

-- Flows that are no longer kept, counts of one flow, one node with many edges, and children that are undecided.
insert into `laneway_flow` (id, queue, name, created_at, keep, ended_at, expires_at)
select @n + i, 'q', concat('g', i), 0, 1, @old, @old from series;
insert into `laneway_flow_node` (id, flow_id, pending, children, run_when, state, queue, channel, kind)
select 60 * @n + i, @n + 1 + i div 100, 0, if(i = 1, @n, 0), 'ended', 'completed', 'q', 'c', 'k' from series;
insert into `laneway_flow_edge` select 60 * @n + 1, i, 61 * @n + i, 0, 0 from series;
insert into `laneway_flow_count` (flow_id, held, live, dead, completed, failed, skipped) select 1, 0, 0, 0, 1, 0, 0 from series;
insert into `laneway_flow_node` (id, flow_id, pending, children, run_when, state, queue, channel, kind)
select 70 * @n + i, @n, 1, 1, 'ended', if(i <= @n div 2, 'completed', 'skipped'), 'q', 'c', 'k' from series;
insert into `laneway_flow_edge` select 70 * @n + i, 0, 70 * @n + @n div 2 + i, 0, 0 from series where i <= @n div 2;
insert into `laneway_flow_undecided` select 70 * @n + i, 0, 1, 0, 0, @n from series where i <= @n div 2;

-- Shared limits: sets for which nothing waits, with lanes or without; and what was made due.
insert into `laneway_limit_queue` select 'p', concat('t', i) from series;
insert into `laneway_limit_queue` values ('p', 'many');
insert into `laneway_limit_clock` select concat('t', i), '', @old from series;
insert into `laneway_limit_lane` select concat('u', i), unhex(md5(1)), 'q', 5, 0, @old from series;
insert into `laneway_limit_wait` select @n + i, 'many', unhex(md5(i)), 'k', 0, 0, @old, 0 from series;
insert into `laneway_shared_limit` (name, adapt_min, adapt_max, adapted) values ('controlled', 1, 2, 1);
insert into `laneway_limit_lease` (name, message_id, fence) select 'controlled', i, 2 from series where i <= 100;
