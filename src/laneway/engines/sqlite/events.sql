-- name: endings
-- $1: ids. One row for each, in their order; the outcome is null if the message has not ended. A result that is kept
-- knows more than a history that keeps only failures, or nothing; so does a node of a flow.
select j.value,
    case when m.id is not null then null when d.id is not null then 'dead'
        when n.state = 'held' or n.id is null and exists (select 1 from "laneway_flow_held" f where f.id = j.value) then null
        else coalesce(r.outcome, h.outcome, n.state, 'unknown') end,
    coalesce(d.died_at, r.ended_at, h.ended_at, n.ended_at), coalesce(d.reason, r.reason, h.reason),
    coalesce(d.error_type, r.error_type, h.error_type), coalesce(d.error, r.error, h.error), r.expires_at
from json_each($1) j
left join "laneway_message" m on m.id = j.value
left join "laneway_dead" d on d.id = j.value and m.id is null
left join "laneway_result" r on r.message_id = j.value and m.id is null and d.id is null
left join "laneway_history" h on m.id is null and d.id is null and r.message_id is null and h.id = (
    select max(k.id) from "laneway_history" k where k.message_id = j.value and k.terminal)
left join "laneway_flow_node" n on n.id = j.value
order by j.key

-- name: results
-- $1: ids, $2: now. Of messages that completed, those that are still kept.
select r.message_id, r.content_type, r.payload
from json_each($1) j cross join "laneway_result" r
where r.message_id = j.value and r.payload is not null and r.expires_at > $2

-- name: listen
-- $1..$4: the columns of EventFilter as JSON, null for all; $5: until.
insert into "laneway_listener" (until, read_to, what, queues, channels, kinds)
values ($5, (select coalesce(max(number), 0) from "laneway_mail"), $1, $2, $3, $4)
returning id

-- name: listener_status
-- $1: listener, $2: now. One row: alive, how far behind, and whether it has mail.
select
    exists (select 1 from "laneway_listener" where id = $1 and until > $2),
    (select max(number) from "laneway_mail") - (select read_to from "laneway_listener" where id = $1),
    exists (select 1 from "laneway_mail" where listener_id = $1)

-- name: hear
-- $1: listener, $2: limit.
select number, at, what, events from "laneway_mail" where listener_id = $1 order by number limit $2

-- name: delete_heard_mail
-- $1: listener, $2: the number of the last mail that was read.
delete from "laneway_mail" where listener_id = $1 and number <= $2

-- name: extend_listener
-- $1: listener, $2: until.
update "laneway_listener" set until = $2,
    read_to = (select coalesce(max(number), 0) from "laneway_mail")
where id = $1

-- name: unlisten
-- $1: listener, $2: now. Upkeep deletes it and its mail.
update "laneway_listener" set until = min(until, $2) where id = $1

-- name: add_events
-- $1: what, $2: message ids, $3: now. One row for each listener whose filters match some of them.
insert into "laneway_mail" (listener_id, at, what, events)
select l.id, $3, $1, json_group_array(json_array(m.id, c.queue, c.name, m.kind))
from json_each($2) j cross join "laneway_message" m cross join "laneway_channel" c
cross join "laneway_listener" l
where m.id = j.value and c.id = m.channel_id and l.until > $3
    and (select coalesce(max(number), 0) from "laneway_mail") - l.read_to < 100000
    and (l.what is null or $1 in (select value from json_each(l.what)))
    and (l.queues is null or c.queue in (select value from json_each(l.queues)))
    and (l.channels is null or c.name in (select value from json_each(l.channels)))
    and (l.kinds is null or m.kind in (select value from json_each(l.kinds)))
group by l.id

-- name: add_dead_letter_events
-- $1: what, $2: ids of dead letters, $3: now. One row for each listener whose filters match some of
-- them.
insert into "laneway_mail" (listener_id, at, what, events)
select l.id, $3, $1, json_group_array(json_array(d.id, d.queue, d.channel, d.kind))
from json_each($2) j cross join "laneway_dead" d cross join "laneway_listener" l
where d.id = j.value and l.until > $3
    and (select coalesce(max(number), 0) from "laneway_mail") - l.read_to < 100000
    and (l.what is null or $1 in (select value from json_each(l.what)))
    and (l.queues is null or d.queue in (select value from json_each(l.queues)))
    and (l.channels is null or d.channel in (select value from json_each(l.channels)))
    and (l.kinds is null or d.kind in (select value from json_each(l.kinds)))
group by l.id
