-- What a chaos run asks MySQL or MariaDB beside the queue: its table of effects, and checks in one snapshot.

-- name: version
select version()

-- name: create_effects
create table laneway_chaos_effect (n varchar(100) not null)

-- name: add_effect
insert into laneway_chaos_effect (n) values ($1)

-- name: effects
select n from laneway_chaos_effect

-- name: drop_effects
drop table if exists laneway_chaos_effect

-- name: kind_counts
-- What upkeep has counted: messages that have not ended, and dead letters.
select queue, kind, live, dead from laneway_chaos_kind_count

-- name: block_writers
select id from laneway_chaos_channel for update

-- name: idle_timeout
-- Each line by itself. The setting is for new sessions: those that idle now are ended.
set global wait_timeout = 1
begin not atomic for s in (select id from information_schema.processlist where command = 'Sleep' and time_ms > 300 and id <> connection_id()) do kill s.id; end for; end

-- name: no_idle_timeout
set global wait_timeout = 28800

-- name: over_limit
-- One snapshot: channels with more leases than their policy allows; leases that ran out count.
select c.queue, c.channel, count(*), c.concurrency
from laneway_chaos_message_v1 m
join laneway_chaos_channel_v1 c on c.queue = m.queue and c.channel = m.channel
where m.state = 'leased'
group by c.queue, c.channel, c.concurrency
having count(*) > c.concurrency

-- name: two_states
-- One snapshot: dead letters that wait too, messages that have ended and are there.
select d.id, 'is dead and waits' from laneway_chaos_dead_letter_v1 d join laneway_chaos_message_v1 m on m.id = d.id
union all
select h.message_id, 'has ended and is there' from laneway_chaos_history_v1 h
where h.terminal and (exists (select 1 from laneway_chaos_message_v1 m where m.id = h.message_id)
    or exists (select 1 from laneway_chaos_dead_letter_v1 d where d.id = h.message_id))
