-- name: diagnose_server
-- The server's settings that decide what a crash can lose, and what slows it down.
select current_setting('server_version') as version, pg_is_in_recovery() as standby,
    current_setting('synchronous_commit') as synchronous_commit, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes,
    current_setting('synchronous_standby_names') as wanted_standbys,
    (select count(*) from pg_stat_replication) as standbys,
    (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous,
    (select count(*) from pg_replication_slots where not active) as idle_slots,
    current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on' as autovacuum,
    pg_notification_queue_usage() as notifications,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
    CAST(current_setting('max_connections') AS bigint) as max_connections,
    (select count(*) from pg_prepared_xacts) as prepared,
    (select min(prepared) from pg_prepared_xacts) as oldest_prepared,
    (select gid from pg_prepared_xacts order by prepared limit 1) as prepared_name,
    clock_timestamp() as now

-- name: diagnose_snapshot
-- Who holds the oldest snapshot: sessions, slots, prepared transactions; except this session. The start
-- and the state of another role's session may be hidden.
select who, started, transactions
from (
    select format('process %s of %s%s%s', pid, coalesce(usename, '?'),
            case when application_name <> '' then format(' (%s)', application_name) end,
            case when state is not null then format(', %s', state) end) as who,
        coalesce(xact_start, backend_start) as started, CAST(age(backend_xmin) AS bigint) as transactions
    from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid()
    union all
    select format('replication slot %s', slot_name), null,
        CAST(greatest(age(xmin), age(catalog_xmin)) AS bigint)
    from pg_replication_slots where xmin is not null or catalog_xmin is not null
    union all
    select format('prepared transaction %s', gid), prepared, CAST(age(transaction) AS bigint)
    from pg_prepared_xacts
) s
order by transactions desc, started
limit 1

-- name: diagnose_path
-- Schemas in this session's search path in which anybody may create objects.
select n.nspname from pg_catalog.pg_namespace n
where n.nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false))
    and pg_catalog.has_schema_privilege('public', n.oid, 'create')
order by n.nspname

-- name: diagnose_tables
-- $1: schema. Dead rows of each table, and whether its autovacuum was turned off.
select s.relname as name, s.n_live_tup as live, s.n_dead_tup as dead,
    coalesce('autovacuum_enabled=false' = any(c.reloptions), false) as vacuum_off,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where s.schemaname = CAST($1 AS text)
order by s.n_dead_tup desc, s.relname

-- name: diagnose_leases
-- $1: how long ago a lease must have expired, $2: now. Upkeep handles expired leases within seconds.
select expired, since from "laneway".look_expired_v1(CAST($1 AS interval), CAST($2 AS timestamptz))

-- name: diagnose_readers
-- $1: now. Streams of the history that have lost rows, or of which long nothing was seen.
select name, seen_at, seen_at + patience as waited_until, missed_at
from "laneway".history_reader
where missed_at is not null or seen_at + patience / 2 < coalesce(CAST($1 AS timestamptz), clock_timestamp())
order by missed_at is null, seen_at

-- name: waiting_work
-- $1: now.
select queue, since, claimed, kinds from "laneway".waiting_work_v1(CAST($1 AS timestamptz))
