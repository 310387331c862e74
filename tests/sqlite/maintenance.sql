-- Rows for everything that maintenance has to do, one of each kind for each row of "series". terms: n (how many),
-- now, and old (a time long ago).
update laneway_state set message_id = 10 * n, fence = n, turn = n, flows = n from terms;
update laneway_fold set message_id = 10 * n, history_id = n from terms;

insert into laneway_history (message_id, attempt, ended_at, terminal, dead, queue, channel, kind, outcome)
select i, 1, old + i * 1000000, 1, 0, 'q', 'c', 'k', 'completed' from series, terms;
-- And what is not counted yet.
insert into laneway_history (message_id, attempt, first_published_at, ended_at, terminal, dead, queue, channel, kind, outcome)
select 10 * n, 1, 0, now, 1, 0, 'q', 'c', 'k', 'completed' from terms;

-- Channels with messages, and removed ones.
insert into laneway_channel (id, queue, name, created_at, paused, paused_until)
select i, 'q', 'c' || i, 0, 1, old from series, terms;
insert into laneway_channel (id, queue, name, created_at, closing) select n + i, 'q', 'x' || i, 0, 1 from series, terms;

-- Leases that ran out, some of messages that have used up their attempts; and messages that have lapsed.
insert into laneway_message (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type, payload)
select i, 1 + i % 100, 0, 0, 0, 0, case when i % 100 then 20 else 1 end, 'k', 't', 'p' from series;
insert into laneway_claim select distinct i / 10, old, 0, 'w' from series, terms;
insert into laneway_lease select i / 10, i, 1 + i % 100, old from series, terms;
insert into laneway_message (
    id, channel_id, priority, due, published_at, first_published_at, max_attempts, kind, content_type, payload,
    expires_at)
select n + i, 1 + i % 100, 0, 0, 0, 0, 20, 'k', 't', 'p', old from series, terms;
insert into laneway_waiting select 1 + i % 100, 0, 0, n + i, old from series, terms;
update laneway_channel set leased = x.n from (select channel_id, count(*) as n from laneway_lease group by 1) x
where x.channel_id = id;
update laneway_channel set waiting = x.n from (select channel_id, count(*) as n from laneway_waiting group by 1) x
where x.channel_id = id;

insert into laneway_dedupe (queue, key, message_id, expires_at) select 'q', 'k' || i, 0, old from series, terms;
-- Listeners are few.
insert into laneway_listener (id, until, read_to) select i, old, 0 from series, terms where i <= 100;
insert into laneway_mail (listener_id, at, what, events) select 1 + i % 100, 0, 'published', '[]' from series;
-- One whose mail is gone.
insert into laneway_listener (id, until, read_to) select 101, old, 0 from terms;
insert into laneway_pause (queue, until, since, actor, reason) select 'q' || i, old, 0, 'a', 'r' from series, terms;
insert into laneway_audit (at, actor, source, action, target) select old, 'a', 's', 'a', 't' from series, terms;
insert into laneway_worker
select 'w' || i, 'w', 'h', 1, '1', '[]', '[]', 1, 0, 0, 0, old from series, terms;
insert into laneway_cancel_request select 10 * n + i, i, 'w', 0 from series, terms;
insert into laneway_result (message_id, ended_at, expires_at, queue, channel, kind, outcome)
select i, 0, old, 'q', 'c', 'k', 'completed' from series, terms;
insert into laneway_progress (message_id, fence, at) select i, 0, old from series, terms;

-- Flows that have ended, and are no longer kept; nodes of which children are undecided.
insert into laneway_flow (id, queue, name, created_at, keep) select i, 'q', 'f' || i, 0, 1 from series;
insert into laneway_flow_node (id, flow_id, pending, run_when, state, queue, channel, kind)
select 2 * n - i, i, 0, 'ended', 'completed', 'q', 'c', 'k' from series, terms;
insert into laneway_flow_edge select 2 * n - i, 2 * n - 1 - i % n, 0, 0 from series, terms;
insert into laneway_flow_undecided select 2 * n - i, 0, 0, 0, 1, i from series, terms;

-- Shared limits; who runs behind one is bounded by its concurrency.
insert into laneway_limit_queue select 'q', 'l' || i from series;
insert into laneway_limit_lane select 'l' || i, 1, 'q', 1, 0, old from series, terms;
insert into laneway_limit_clock select 'l' || i, '', old from series, terms;
insert into laneway_limit_wait select i, 'l', 1, 'k', 0, 0, old, 0 from series, terms;
insert into laneway_shared_limit (name, created_at, adapt_min, adapt_max, adapted) values ('l', 0, 1, 2, 1);
insert into laneway_limit_lease (name, message_id, fence) select 'l', i, i / 10 from series where i < 100;

-- Figures; kinds are few.
insert into laneway_minute select span, i * 60000000, 'q', 'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
from series, (select 1 as span union all select 60);
insert into laneway_depth select i * 60000000, 'q', 1, 0 from series;
insert into laneway_kind_depth select i * 60000000, 'q', 'k', 1 from series;
insert into laneway_history_gap select i, i + 1 from series;
insert into laneway_kind_count select 'q', 'k' || i, 0 from series where i < 100;
