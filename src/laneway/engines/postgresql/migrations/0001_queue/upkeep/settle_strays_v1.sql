-- Part of upkeep: leases that were charged to a channel's new limit while another transaction had them
-- locked. Still there: mark them as counted, so that their end frees the slot. Gone: free it now.
create or replace function "laneway".settle_strays_v1(p_now timestamptz default null)
returns bigint
language plpgsql
set search_path = "laneway", pg_temp
set jit = off
as $$
declare
    v_now timestamptz;
    v_done bigint;
begin
    if not exists (select from stray) then
        return 0;
    end if;
    v_now := write_time_v1(p_now);
    with open as (
        select l.message_id, l.fence from lease l join stray s on s.message_id = l.message_id and s.fence = l.fence
        order by l.message_id for update of l skip locked
    ),
    alive as (
        update lease l set counted = true from open o where l.message_id = o.message_id returning l.message_id, l.fence
    ),
    gone as (
        select s.message_id, s.fence, s.channel_id, s.queue, s.channel from stray s
        where not exists (select from lease l where l.message_id = s.message_id and l.fence = s.fence)
    ),
    freed as (
        insert into wake (at, channel_id, due, message_id, n, freed, priority, queue, channel, lane)
        select v_now, g.channel_id, v_now, 0, 0, count(*), 0, g.queue, g.channel,
            case when g.queue = any(array(select s.queue from kind_queue s)) then '-' else '' end
        from gone g group by g.channel_id, g.queue, g.channel
    ),
    settled as (
        delete from stray s
        where exists (select from alive a where a.message_id = s.message_id and a.fence = s.fence)
            or exists (select from gone g where g.message_id = s.message_id and g.fence = s.fence)
        returning s.message_id
    )
    select count(*) into v_done from settled;
    return v_done;
end
$$;
