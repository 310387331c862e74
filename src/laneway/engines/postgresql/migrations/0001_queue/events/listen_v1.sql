-- listen: create a mailbox for events, for p_length. A null filter matches all. Answers its id.
--
-- Keeps: it gets the events of every transaction that begins after this one has committed; those of a
-- transaction that was open then may be missing.
create or replace function "laneway".listen_v1(
    p_what text[], p_queues text[], p_channels text[], p_kinds text[], p_length interval,
    p_now timestamptz default null
) returns bigint
language sql
set search_path = "laneway", pg_temp
as $$
    insert into listener (until, id, read_to, what, queues, channels, kinds)
    select coalesce(p_now, clock_timestamp()) + p_length, nextval('listener_id'), n.last_value,
        p_what, p_queues, p_channels, p_kinds
    from mail_number n
    returning id
$$;
