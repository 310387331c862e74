-- name: migration_exists
-- $1: the table's name.
select exists (select 1 from sqlite_master where type = 'table' and name = $1 collate nocase)

-- name: migration_number
select coalesce(max(number), 0) from "laneway_migration"

-- name: migration_note
-- Part of the migration script; $1 and $2 are replaced by literals.
insert into "laneway_migration" (number, name) values ($1, $2)

-- name: uninstall
-- Drops everything that install created, with its data.
drop view "laneway_minute_v1";
drop view "laneway_worker_v1";
drop view "laneway_subscription_v1";
drop view "laneway_schedule_v1";
drop view "laneway_queue_stats_v1";
drop view "laneway_channel_stats_v1";
drop view "laneway_channel_v1";
drop view "laneway_history_v1";
drop view "laneway_dead_letter_v1";
drop view "laneway_message_v1";
drop view "laneway_lake_sure";
drop table "laneway_limit_clock";
drop table "laneway_limit_queue";
drop table "laneway_limit_wait";
drop table "laneway_limit_lane";
drop table "laneway_limit_lease";
drop table "laneway_shared_limit";
drop table "laneway_flow_undecided";
drop table "laneway_flow_held";
drop table "laneway_flow_edge";
drop table "laneway_flow_node";
drop table "laneway_flow";
drop table "laneway_kind_depth";
drop table "laneway_kind_count";
drop table "laneway_lane";
drop table "laneway_kind_waiting";
drop table "laneway_kind_queue";
drop table "laneway_progress";
drop table "laneway_result";
drop table "laneway_split_count";
drop table "laneway_fullest";
drop table "laneway_queue_count";
drop table "laneway_history_gap";
drop table "laneway_depth";
drop table "laneway_minute";
drop table "laneway_fold";
drop table "laneway_operation";
drop table "laneway_audit";
drop table "laneway_pause";
drop table "laneway_cancel_request";
drop table "laneway_worker";
drop table "laneway_lake_file";
drop table "laneway_lake_commit";
drop table "laneway_done";
drop table "laneway_subscription";
drop table "laneway_schedule";
drop table "laneway_history";
drop table "laneway_mail";
drop table "laneway_listener";
drop table "laneway_dead_count";
drop table "laneway_dead";
drop table "laneway_dedupe";
drop table "laneway_lease";
drop table "laneway_claim";
drop table "laneway_waiting";
drop table "laneway_message";
drop table "laneway_channel";
drop table "laneway_fair_channel";
drop table "laneway_fair_queue";
drop table "laneway_state";
drop table "laneway_migration";

-- name: shape
-- What is in a schema.
-- All that begins with the prefix, each with what it was created by, and the columns of the tables.
-- $1: prefix with its underscore, $2: its length.
select type, name, '', 0, sql from sqlite_master where substr(name, 1, $2) = $1
union all
select 'column', m.name, c.name, c.pk, null
from sqlite_master as m join pragma_table_info(m.name) as c
where m.type = 'table' and substr(m.name, 1, $2) = $1
