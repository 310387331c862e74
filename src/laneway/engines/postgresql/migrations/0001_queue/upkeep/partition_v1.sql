-- Part of upkeep: history partitions, one a day: today's and the next three exist, those past the
-- retention are dropped whole, except those that are still needed. If a lock is not free at once, it is
-- left for the next time, so that nobody waits behind this.
create or replace function "laneway".partition_v1(p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '100ms'
as $$
declare
    v_today date := (coalesce(p_now, clock_timestamp()) at time zone 'UTC')::date;
    v_keep integer := (select s.history_days from setting s);
    v_day date;
    v_name text;
    v_done bigint := 0;
begin
    for v_day in select v_today + i from generate_series(0, 3) i loop
        v_name := 'history_' || to_char(v_day, 'YYYYMMDD');
        continue when to_regclass(quote_ident(v_name)) is not null;
        begin
            execute format('create table %I (like history including defaults)', v_name);
            -- Rows that came before their partition. Locked first, as attaching does anyway: a row written
            -- in between would make it fail, under load every time.
            lock table history_other in access exclusive mode;
            execute format(
                'with early as (delete from history_other where ended_at >= %1$L and ended_at < %2$L returning *) '
                'insert into %3$I select * from early',
                v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC', v_name);
            execute format('alter table history attach partition %I for values from (%L) to (%L)',
                v_name, v_day::timestamp at time zone 'UTC', (v_day + 1)::timestamp at time zone 'UTC');
            v_done := v_done + 1;
        exception when lock_not_available or deadlock_detected or check_violation then
            null;
        end;
    end loop;
    for v_name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'history'::regclass and c.relname ~ '^history_[0-9]{8}$'
            and to_date(right(c.relname, 8), 'YYYYMMDD') < v_today - v_keep
    loop
        continue when history_kept_v1(to_date(right(v_name, 8), 'YYYYMMDD'));
        begin
            execute format('drop table %I', v_name);
            v_done := v_done + 1;
        exception when lock_not_available or deadlock_detected then
            null;
        end;
    end loop;
    return v_done;
end
$$;
