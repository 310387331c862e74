-- name: control_to_delete
-- $1: now, $2: limit. Ended pauses (0) and old rows of the audit (1), with their ids; whether pauses of
-- channels have ended (2).
(select 0, id from `laneway_pause` where until <= $1 limit $2)
union all
(select 1, a.id from `laneway_setting` s
straight_join `laneway_audit` a on a.at < $1 - s.audit_days * 86400000000
where (select b.at from `laneway_audit` b order by b.id limit 1) < $1 - s.audit_days * 86400000000
order by a.id limit $2)
union all
(select 2, 0 from `laneway_channel` force index (channel_timed) where paused_until <= $1 limit 1)

-- name: timed_channels
-- $1: now, $2: limit. Channels whose pauses have ended, skipping those that others hold.
select id from `laneway_channel` force index (channel_timed) where paused_until <= $1 limit $2
for update skip locked

-- name: delete_pauses
-- $1: ids.
delete t from $1:ids x straight_join `laneway_pause` t force index (primary) on t.id = x.id

-- name: delete_audit
-- $1: ids.
delete t from $1:ids x straight_join `laneway_audit` t force index (primary) on t.id = x.id
