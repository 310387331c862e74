-- $1: message ids. Those that no lease holds.
delete from "penstock_waiting"
where (channel_id, priority, due, message_id) in (
    select m.channel_id, m.priority, m.due, m.id
    from json_each($1) j cross join "penstock_message" m where m.id = j.value)
returning message_id
