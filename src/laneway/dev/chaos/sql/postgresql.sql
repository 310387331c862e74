-- What a chaos run asks PostgreSQL beside the queue: its table of effects, and checks in one snapshot.

-- name: version
select 'PostgreSQL ' || current_setting('server_version')

-- name: create_effects
create table "laneway_chaos".effect (n text not null)

-- name: add_effect
insert into "laneway_chaos".effect (n) values ($1)

-- name: effects
select n from "laneway_chaos".effect

-- name: drop_effects
drop table if exists "laneway_chaos".effect

-- name: kind_counts
-- What upkeep has counted: messages that have not ended, and dead letters.
select queue, kind, live, dead from "laneway_chaos".live_count

-- name: block_writers
-- Writers wait for this until it is let go.
lock table "laneway_chaos".lease in exclusive mode

-- name: idle_timeout
-- Each line by itself.
alter system set idle_session_timeout = '300ms'
select pg_reload_conf()

-- name: no_idle_timeout
alter system reset idle_session_timeout
select pg_reload_conf()

-- name: over_limit
-- One snapshot: channels with more leases than their policy allows; leases that ran out count.
select c.queue, c.name, count(*), c.concurrency
from "laneway_chaos".lease l join "laneway_chaos".channel c on c.id = l.channel_id
group by c.id
having count(*) > c.concurrency

-- name: two_states
-- One snapshot: dead letters that wait too, messages that have ended and are there, leases of nothing.
select d.id, 'is dead and waits' from "laneway_chaos".dead d join "laneway_chaos".message m on m.id = d.id
union all
select h.message_id, 'has ended and is there' from "laneway_chaos".history h
where h.terminal and (exists (select from "laneway_chaos".message m where m.id = h.message_id)
    or exists (select from "laneway_chaos".dead d where d.id = h.message_id))
union all
select l.message_id, 'is leased and is not there' from "laneway_chaos".lease l
where not exists (select from "laneway_chaos".message m where m.id = l.message_id)
