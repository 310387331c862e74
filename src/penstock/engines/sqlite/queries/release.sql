-- $1: rows of message id and fence. Only the holder of the lease with this fence ends it.
delete from "penstock_lease"
where (fence, message_id) in (
    select json_extract(value, '$[1]'), json_extract(value, '$[0]') from json_each($1))
returning message_id, fence, channel_id
