-- open job: from here on attempts may stage for it, until unstage_v1 ends it.
create or replace function "laneway".open_job_v1(p_job text)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    insert into staged (name, job) values (p_job, p_job);
$$;
