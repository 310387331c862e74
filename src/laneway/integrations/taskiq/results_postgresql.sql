-- The results of taskiq's tasks. A row without a result is of a task that has told its progress.

-- name: there
select 1 from pg_class where oid = to_regclass('taskiq_laneway_results')

-- name: create
create table taskiq_laneway_results (
    task_id text primary key,
    kept_until timestamptz not null,
    result bytea,
    progress bytea
);
create index taskiq_laneway_results_old on taskiq_laneway_results (kept_until)

-- name: set_result
-- $1: task, $2: result, $3: kept for so many seconds.
insert into taskiq_laneway_results (task_id, result, kept_until)
values ($1, $2, clock_timestamp() + make_interval(secs => $3))
on conflict (task_id) do update set result = excluded.result, kept_until = excluded.kept_until
returning 1

-- name: set_progress
-- $1: task, $2: progress, $3: kept for so many seconds.
insert into taskiq_laneway_results (task_id, progress, kept_until)
values ($1, $2, clock_timestamp() + make_interval(secs => $3))
on conflict (task_id) do update set progress = excluded.progress, kept_until = excluded.kept_until
returning 1

-- name: is_ready
select 1 from taskiq_laneway_results
where task_id = $1 and result is not null and kept_until > clock_timestamp()

-- name: get_result
select result from taskiq_laneway_results
where task_id = $1 and result is not null and kept_until > clock_timestamp()

-- name: get_progress
select progress from taskiq_laneway_results
where task_id = $1 and progress is not null and kept_until > clock_timestamp()

-- name: purge
with old as (delete from taskiq_laneway_results where kept_until <= clock_timestamp() returning 1)
select count(*) from old
