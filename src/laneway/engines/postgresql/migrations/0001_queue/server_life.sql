-- The life of the server: the time from a start, a crash recovery or a promotion to the next. What the life before
-- handed out may be lost, and a sequence would hand it out again: docs/decisions/0027-server-lives.md.

-- The number of this life: what the sequences below were set to when it began. Two lives never have the same.
create sequence "laneway".server_life;

-- PostgreSQL empties unlogged tables exactly when written log may have been lost: in crash recovery (also when a backend
-- crashed, which does not change the server's start time), and at a promotion; a backup of the files has none of
-- them. The mark is that this table's file has a page, not a row: so it is there at once, for every snapshot, whatever
-- becomes of the transaction that made it, and no dump takes it along.
create unlogged table "laneway".server_life_mark (
    begun boolean
) with (vacuum_truncate = false);

-- Part of every verb that takes numbers from a sequence, before it does: the number of this life of the server, which
-- the first call of a life begins. The start time finds a copy of the files of a server that was stopped.
create or replace function "laneway".server_life_v1()
returns bigint
language plpgsql
as $$
declare
    -- A fourth of the cost of selecting it from the sequence.
    v_life bigint := pg_sequence_last_value('"laneway".server_life'::regclass);
begin
    if pg_relation_size('"laneway".server_life_mark'::regclass) = 0
        or v_life < date_part('epoch', pg_postmaster_start_time()) * 1000000 then
        v_life := "laneway".begin_server_life_v1();
    end if;
    return v_life;
end
$$;

-- Part of server_life_v1: move all sequences whose numbers must never come twice.
--
-- Keeps: no number is above the life's before all sequences are, and nobody takes one before. Numbers of a lost life
-- are not found here, so the number is the time: microseconds since 1970, which no life overtakes with fewer
-- than a million numbers a second, and which stay exact in a double (2^53). If this server's clock is behind what
-- was handed out, it is a random number beyond that.
--
-- Locks: the mark's table, against others who do the same, only until the end of a subtransaction that is always rolled
-- back: a caller may keep its own transaction open for an hour. What setval wrote and the page stay.
create or replace function "laneway".begin_server_life_v1()
returns bigint
language plpgsql
security definer
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
as $$
declare
    -- Not mail_number: it is handed to nobody, and how full a mailbox is, is the distance from it.
    v_sequences constant regclass[] := array[
        'message_id', 'fence', 'history_id', 'flow_id', 'listener_id', 'staged_part_id', 'schedule_revision',
        'audit_id_seq', 'operation_id_seq', 'server_life'];
    v_start constant bigint := ceil(date_part('epoch', pg_postmaster_start_time()) * 1000000);
    v_last bigint;
    v_life bigint;
begin
    if pg_is_in_recovery() then
        raise exception 'laneway: this server is a standby, it gives out no numbers during recovery'
            using errcode = 'read_only_sql_transaction', hint = 'Connect to the primary.';
    end if;
    begin
        lock table server_life_mark in exclusive mode;
        v_life := pg_sequence_last_value('server_life');
        if v_life is null or v_life < v_start or pg_relation_size('server_life_mark') = 0 then
            v_last := (select max(pg_sequence_last_value(s)) from unnest(v_sequences) s);
            v_life := greatest(v_start, (date_part('epoch', clock_timestamp()) * 1000000)::bigint);
            if v_life <= v_last then
                v_life := v_last + ((1 + random()) * 4294967296)::bigint;
            end if;
            -- The life's own number is the last of the list, and the mark comes after it: whoever sees both sees all.
            perform setval(s, v_life) from unnest(v_sequences) s;
            insert into server_life_mark values (true);
        end if;
        raise exception using errcode = 'PNL01';
    exception when sqlstate 'PNL01' then
        null;
    end;
    return v_life;
end
$$;
