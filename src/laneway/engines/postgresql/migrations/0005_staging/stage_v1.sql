-- stage: a new table for one attempt of one task, to be filled in the same transaction.
--
-- Keeps: nobody sees the table before it is complete, and an attempt that dies leaves nothing.
-- Unlogged: a crash of the server empties it, and publish_staged_v1 then misses its rows.
create or replace function "laneway".stage_v1(p_job text, p_attempt bigint)
returns text
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_name text := format('staged_%s_%s', left(md5(p_job), 16), p_attempt);
begin
    execute format('create unlogged table %I (like staged_row including defaults)', v_name);
    -- Not compressed: the rows are about to be moved anyway.
    execute format('alter table %I alter column payload set storage external', v_name);
    insert into staged (name, job) values (v_name, p_job);
    return v_name;
end
$$;
