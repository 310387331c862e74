-- unlisten: close a mailbox. Its row stays for a while, so that upkeep finds what is still being written.
create or replace function "laneway".unlisten_v1(p_listener_id bigint, p_now timestamptz default null)
returns void
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    update listener l set until = v_now where l.until > v_now and l.id = p_listener_id;
    delete from mail m where m.listener_id = p_listener_id;
end
$$;
