-- The results of taskiq's tasks. A row without a result is of a task that has told its progress.
-- Times are seconds since 1970, so that no session's time zone matters.

-- name: there
select 1 from information_schema.tables
where table_schema = database() and table_name = 'taskiq_laneway_results'

-- name: create
create table taskiq_laneway_results (
    task_id varbinary(255) primary key,
    kept_until double not null,
    result longblob,
    progress longblob,
    key taskiq_laneway_results_old (kept_until)
)

-- name: set_result
-- Task, result, kept for so many seconds.
insert into taskiq_laneway_results (task_id, result, kept_until)
values (%s, %s, unix_timestamp(sysdate(6)) + %s)
on duplicate key update result = values(result), kept_until = values(kept_until)

-- name: set_progress
-- Task, progress, kept for so many seconds.
insert into taskiq_laneway_results (task_id, progress, kept_until)
values (%s, %s, unix_timestamp(sysdate(6)) + %s)
on duplicate key update progress = values(progress), kept_until = values(kept_until)

-- name: is_ready
select 1 from taskiq_laneway_results
where task_id = %s and result is not null and kept_until > unix_timestamp(sysdate(6))

-- name: get_result
select result from taskiq_laneway_results
where task_id = %s and result is not null and kept_until > unix_timestamp(sysdate(6))

-- name: get_progress
select progress from taskiq_laneway_results
where task_id = %s and progress is not null and kept_until > unix_timestamp(sysdate(6))

-- name: purge
delete from taskiq_laneway_results where kept_until <= unix_timestamp(sysdate(6))
