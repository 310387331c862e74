-- unstage: drop the staging tables of a job, or (p_job null) all that are older than p_older, whose
-- driver is considered dead; 200 at most, because each costs some locks: call it until it drops fewer. A
-- table that is locked is left for the next time.
--
-- A job with a row of its own (open_job_v1) ends with it: attempts that are still under way find that
-- row gone and roll back. It waits for one that is about to commit, but only briefly: that one may
-- hang.
create or replace function "laneway".unstage_v1(p_job text, p_older interval default '0')
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '5s'
as $$
declare
    v_name text;
    v_dropped bigint := 0;
begin
    begin
        delete from staged s where s.name = p_job;
    exception
        when lock_not_available then null;
    end;
    for v_name in
        select s.name from staged s
        where (p_job is null or s.job = p_job) and s.created_at <= clock_timestamp() - p_older
        order by s.name limit 200 for update skip locked
    loop
        begin
            execute format('lock table %I in access exclusive mode nowait', v_name);
            execute format('drop table %I', v_name);
        exception
            when lock_not_available then continue;
            when undefined_table then null;
        end;
        delete from staged s where s.name = v_name;
        v_dropped := v_dropped + 1;
    end loop;
    return v_dropped;
end
$$;
