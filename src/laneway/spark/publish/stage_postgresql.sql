-- Bulk publish on PostgreSQL: the tasks of a frame load parts, those of a stream's batch fill staging tables; the driver
-- publishes them in one transaction.

-- name: publication
-- Whether this was published before. Publishing asks again; asking here first saves the work.
select exists (select from "laneway".publication p where p.source = $source and p.batch = $batch)

-- name: open_job
select "laneway".open_job_v1($job)

-- name: stage
select "laneway".stage_v1($job, $attempt)

-- name: copy_in
copy $table:table ($columns:names) from stdin (format binary)

-- name: hold_job
select "laneway".hold_job_v1($job)

-- name: begin_part
select b.part, b.at, b.first_id, b.kind_queues from "laneway".begin_part_v1($job) b

-- name: end_part
select "laneway".end_part_v1(
    $job, $part, $first_id, $keyed, $channel_ids::uuid[], $queues::text[], $channels::text[], $kinds::text[],
    $priorities::smallint[], $dues::timestamptz[], $by_kind::boolean[], $counts::bigint[])

-- name: publish_parts
select p.published, p.existing, p.repeated from "laneway".publish_parts_v1($job, $parts::bigint[], $source::text) p

-- name: sweep_staged
select "laneway".sweep_staged_v1($most)

-- name: publish_staged
select p.published, p.existing, p.repeated
from "laneway".publish_staged_v1(
    $job, $names::text[], $counts::bigint[], $source::text, $batch::bigint, $kind,
    $content_type, $priority::smallint, $max_attempts) p

-- name: unstage
select "laneway".unstage_v1($job::text, $older::interval)

-- name: staged_rows
select * from $table:table

-- name: merge_staged
insert into $table:table $rows:sql

-- name: drop_staged
drop table $tables:tables

-- name: forget_staged
delete from "laneway".staged s where s.name = any($names::text[])
