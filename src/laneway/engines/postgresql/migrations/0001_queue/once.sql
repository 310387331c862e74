-- What handlers have done already, by a key that they choose; kept until a time.
create table "laneway".done (
    queue text collate "C" not null,
    key text collate "C" not null,
    keep_until timestamptz not null,
    primary key (queue, key)
);
create index done_expiry on "laneway".done (keep_until);

-- once: record in the caller's transaction that something is done; true the first time.
--
-- Keeps: of all transactions with the same key, exactly one that commits gets true. Another one waits
-- meanwhile until that one has ended. After p_keep the key is forgotten; each call that records a key
-- deletes a few forgotten ones, and waits for nobody over them.
create or replace function "laneway".once_v1(
    p_queue text, p_key text, p_keep interval, p_now timestamptz default null
) returns boolean
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now timestamptz;
begin
    insert into done (queue, key, keep_until)
    values (p_queue, p_key, coalesce(p_now, clock_timestamp()) + p_keep)
    on conflict do nothing;
    if not found then
        -- The insert may have waited: the clock is read after it.
        v_now := coalesce(p_now, clock_timestamp());
        update done d set keep_until = v_now + p_keep
        where d.queue = p_queue and d.key = p_key and d.keep_until <= v_now;
        return found;
    end if;
    v_now := coalesce(p_now, clock_timestamp());
    delete from done d where d.ctid = any(array(
        select k.ctid from done k where k.keep_until <= v_now order by k.keep_until limit 5 for update skip locked));
    return true;
end
$$;
