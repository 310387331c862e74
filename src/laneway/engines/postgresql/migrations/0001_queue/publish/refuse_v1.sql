-- Part of publish: which messages of the batch their channels refuse.
--
-- The backlog is what is committed and unfinished in the channel, as this publisher sees it, plus
-- the batch itself. Publishers do not wait for each other, so transactions that are open at the
-- same time can exceed it by what they publish. Reads at most `backlog` index entries a channel.
create or replace function "laneway".refuse_v1(p_status text[], p_queue text[], p_channel text[])
returns text[]
language sql
set search_path = "laneway", pg_temp
set enable_seqscan = off
as $$
    with item as materialized (
        select
            x.ordinal, x.status,
            channel_id_v1(coalesce(x.queue, p_queue[1]), coalesce(x.channel, p_channel[1])) as channel_id
        from unnest(p_status, p_queue, p_channel) with ordinality x(status, queue, channel, ordinal)
    ),
    gate as materialized (
        select c.id, c.closing,
            c.backlog - (select count(*) from (
                select from message m where m.channel_id = c.id limit c.backlog) m) as room
        from channel c
        where (c.backlog is not null or c.closing) and c.id in (select i.channel_id from item i)
    ),
    queued as (
        select i.ordinal, i.status, g.closing, g.room, g.id,
            count(*) filter (where i.status is null)
                over (partition by i.channel_id order by i.ordinal) as place
        from item i left join gate g on g.id = i.channel_id
    )
    select array_agg(
        case
            when q.status is not null or q.id is null then q.status
            when q.closing then 'closed'
            when q.place > q.room then 'full' end
        order by q.ordinal)
    from queued q
$$;
