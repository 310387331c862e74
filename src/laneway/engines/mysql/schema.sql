-- name: migration_exists
-- $1: name of the migration table.
select count(*) from information_schema.tables where table_schema = database() and table_name = $1

-- name: migration_number
select max(number) from `laneway_migration`

-- name: takes_writes
-- MariaDB 12 answers words.
select cast(@@global.read_only as char) in ('0', 'OFF') and not @@global.innodb_read_only

-- name: migration_lock
-- $1: name. One process at a time migrates. The session holds the lock, because MySQL commits every change
-- of a table separately.
select get_lock($1, 60)

-- name: migration_unlock
-- $1: name.
select release_lock($1)

-- name: migration_note
-- The last statement of each migration's script; $1 and $2 are replaced by literals.
insert ignore into `laneway_migration` (number, name, applied_at)
values ($1, $2, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))

-- name: uninstall
-- Drops everything that install creates, with its data.
drop view if exists `laneway_minute_v1`, `laneway_worker_v1`, `laneway_subscription_v1`, `laneway_schedule_v1`, `laneway_queue_stats_v1`, `laneway_channel_stats_v1`, `laneway_stats`,
    `laneway_channel_v1`, `laneway_history_v1`, `laneway_dead_letter_v1`, `laneway_message_v1`;
drop table if exists `laneway_fair_channel`, `laneway_fair_queue`, `laneway_limit_clock`, `laneway_limit_queue`, `laneway_limit_wait`, `laneway_limit_lane`, `laneway_limit_lease`, `laneway_shared_limit`, `laneway_flow_undecided`, `laneway_flow_released`, `laneway_flow_added`, `laneway_flow_held`, `laneway_flow_edge`, `laneway_flow_node`, `laneway_flow_count`, `laneway_flow_name`, `laneway_flow`, `laneway_lane`, `laneway_kind_wake`, `laneway_kind_message`, `laneway_kind_queue`, `laneway_progress`, `laneway_result`, `laneway_dead_sum`, `laneway_dead_queue`, `laneway_minute`, `laneway_kind_count`, `laneway_gap`, `laneway_fold`, `laneway_cancel_request`, `laneway_worker`, `laneway_operation`, `laneway_audit`, `laneway_pause`, `laneway_lake_file`, `laneway_lake_commit`, `laneway_mail`, `laneway_listener`, `laneway_done`, `laneway_subscription`, `laneway_schedule`, `laneway_history`, `laneway_dead_count`, `laneway_dead`, `laneway_dedupe`,
    `laneway_stray`, `laneway_lease`, `laneway_wake`, `laneway_expiry`, `laneway_message`,
    `laneway_channel`, `laneway_fence`, `laneway_server_life`, `laneway_turnstile`, `laneway_setting`, `laneway_migration`

-- name: shape
-- What is in a schema.
-- All tables of this database whose names begin with the prefix, and what is in them, with the defaults of
-- columns and what views say. A join of these views would open every table once more. $1: prefix with its
-- underscore, $2: its length in characters.
select 'table', t.table_name, '', null
    from information_schema.tables t
    where t.table_schema = database() and t.table_type = 'BASE TABLE' and left(t.table_name, $2) = $1
union all
select 'view', v.table_name, '', v.view_definition
    from information_schema.views v
    where v.table_schema = database() and left(v.table_name, $2) = $1
union all
select 'column', c.table_name, c.column_name, c.column_default
    from information_schema.columns c
    where c.table_schema = database() and left(c.table_name, $2) = $1
union all
select distinct 'index', s.table_name, s.index_name, null
    from information_schema.statistics s
    where s.table_schema = database() and left(s.table_name, $2) = $1
