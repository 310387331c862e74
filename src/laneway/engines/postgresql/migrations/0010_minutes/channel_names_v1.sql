-- Part of channels: the next channels by (queue, name) that were claimed from or have a policy, p_limit at most, from
-- at most p_most rows. Answers how many rows were read, and the last one's names unless there are no more.
create or replace function "laneway".channel_names_v1(
    p_queue text, p_prefix text, p_paused boolean, p_limited boolean, p_after_queue text, p_after_channel text,
    p_limit integer, p_most integer,
    out queues text[], out names text[], out looked bigint, out last_queue text, out last_channel text
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_queue text;
    v_after text := p_after_channel;
    v_least text := coalesce(p_prefix, '');
    v_rows refcursor;
    v_row record;
begin
    queues := '{}';
    names := '{}';
    looked := 0;
    v_queue := coalesce(p_queue, (select min(c.queue) from channel c where c.queue >= p_after_queue));
    while v_queue is not null loop
        if v_queue <> p_after_queue then
            v_after := '';
        end if;
        -- Two statements, each along its index.
        if p_paused or p_limited then
            open v_rows for
            select c.name, c.paused, true as limited from channel c
            where c.queue = v_queue and c.name > v_after and c.name >= v_least
                and (c.weight <> 1 or c.concurrency is not null or c.rate is not null or c.backlog is not null
                    or c.paused or c.closing)
            order by c.name limit p_most - looked;
        else
            open v_rows for
            select c.name, c.paused, c.weight <> 1 or c.concurrency is not null or c.rate is not null
                or c.backlog is not null or c.paused or c.closing as limited
            from channel c where c.queue = v_queue and c.name > v_after and c.name >= v_least
            order by c.name limit p_most - looked;
        end if;
        loop
            fetch v_rows into v_row;
            exit when not found;
            exit when p_prefix is not null and not starts_with(v_row.name, p_prefix);
            looked := looked + 1;
            last_queue := v_queue;
            last_channel := v_row.name;
            if (p_paused is null or v_row.paused = p_paused) and (p_limited is null or v_row.limited = p_limited) then
                queues := queues || v_queue;
                names := names || v_row.name;
            end if;
            if cardinality(names) >= p_limit or looked >= p_most then
                close v_rows;
                return;
            end if;
        end loop;
        close v_rows;
        v_queue := case when p_queue is null then (select min(c.queue) from channel c where c.queue > v_queue) end;
    end loop;
    last_queue := null;
    last_channel := null;
end
$$;
