-- listen: have a mailbox for events, for p_length. Null matches all. Answers its id.
--
-- Keeps: what a transaction does that begins after this has committed is heard; of one that was under
-- way it may be.
create or replace function "penstock".listen_v1(
    p_what text[], p_queues text[], p_channels text[], p_kinds text[], p_length interval,
    p_now timestamptz default null
) returns bigint
language sql
set search_path = "penstock", pg_temp
as $$
    insert into listener (until, id, read_to, what, queues, channels, kinds)
    select coalesce(p_now, clock_timestamp()) + p_length, nextval('listener_id'), n.last_value,
        p_what, p_queues, p_channels, p_kinds
    from mail_number n
    returning id
$$;
