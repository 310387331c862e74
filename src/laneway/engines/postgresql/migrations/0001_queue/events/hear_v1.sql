-- hear: read and delete up to p_limit rows of a mailbox, in order. There is always at least one row: alive
-- says whether the mailbox still gets events, behind how many rows (of all listeners) were written since it
-- was renewed.
--
-- With p_length the mailbox is renewed: it has read everything. Not more often than needed: every verb
-- that adds events has to step over the old versions of its row.
create or replace function "laneway".hear_v1(
    p_listener_id bigint, p_limit integer, p_length interval default null, p_now timestamptz default null
) returns table (
    alive boolean, behind bigint, number bigint, at timestamptz, what text, ids bigint[], queues text[],
    channels text[], kinds text[]
)
language plpgsql
set search_path = "laneway", pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_number bigint := (select n.last_value from mail_number n);
begin
    select true, v_number - l.read_to into alive, behind
    from listener l where l.until > v_now and l.id = p_listener_id;
    alive := coalesce(alive, false);
    if alive and p_length is not null then
        update listener l set until = v_now + p_length, read_to = v_number
        where l.until > v_now and l.id = p_listener_id;
    end if;
    return query
    with gone as (
        delete from mail m where m.ctid = any(array(
            select k.ctid from mail k where k.listener_id = p_listener_id
            order by k.listener_id, k.number limit p_limit))
        returning m.number, m.at, m.what, m.ids, m.queues, m.channels, m.kinds
    )
    select alive, behind, g.number, g.at, g.what, g.ids, g.queues, g.channels, g.kinds
    from (select) x left join gone g on true
    order by g.number;
end
$$;
