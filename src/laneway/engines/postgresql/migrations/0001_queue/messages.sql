-- messages: a page of messages that have not ended, by id, without payloads; or of dead letters.
--
-- Keeps: a page reads at most p_most rows. Ids are found first, always by an index: leased ones from the leases, dead
-- ones from the dead letters, the others along the ids, or in their channel's index if both names are given and it holds
-- no more than p_most. Locks nothing. next: the id to go on after, null at the end; looked: how many rows were read. If
-- nothing was found and there is more to look at, one row has only these two.
create or replace function "laneway".messages_v1(
    p_queue text default null, p_channel text default null, p_kind text default null, p_state text default null,
    p_after bigint default 0, p_limit integer default 100, p_now timestamptz default null,
    p_most integer default 10000
) returns table (
    id bigint, queue text, channel text, kind text, key text, state text, priority smallint, due timestamptz,
    published_at timestamptz, first_published_at timestamptz, expires_at timestamptz, attempt bigint, max_attempts integer,
    content_type text, headers jsonb, payload_size bigint, fence bigint, worker text, claimed_at timestamptz, until timestamptz,
    died_at timestamptz, reason text, error_type text, error text, next bigint, looked bigint
)
language plpgsql stable
set search_path = "laneway", pg_temp
set jit = off
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_channel_id uuid := channel_id_v1(p_queue, p_channel);
    v_any boolean := p_queue is null and p_channel is null and p_kind is null and p_state is null;
    v_ids bigint[];
    v_to bigint := 9223372036854775807;
    -- A lease costs more: its message is looked up.
    v_most integer := case when p_state = 'leased' then greatest(p_most / 4, 1) else p_most end;
    v_looked bigint;
    v_next bigint;
begin
    -- How far to look: to the end of the table, or to the row number p_most.
    if p_state = 'dead' then
        select count(*), max(d.id) into v_looked, v_next
        from (select k.id from dead k where k.id > p_after order by k.id limit p_most) d;
    elsif p_state = 'leased' then
        select count(*), max(l.message_id) into v_looked, v_next
        from (select k.message_id from lease k where k.message_id > p_after order by k.message_id limit v_most) l;
    elsif v_channel_id is not null then
        v_looked := (select count(*) from (
            select from message k where k.channel_id = v_channel_id limit p_most + 1) m);
        if v_looked > p_most then
            v_channel_id := null;
        end if;
    end if;
    if p_state is distinct from 'dead' and p_state is distinct from 'leased' and v_channel_id is null and not v_any then
        select count(*), max(m.id) into v_looked, v_next
        from (select k.id from message k where k.id > p_after order by k.id limit p_most) m;
    end if;
    if v_looked = v_most and v_next is not null then
        v_to := v_next;
    else
        v_next := null;
    end if;

    if p_state = 'dead' then
        v_ids := array(
            select d.id from dead d
            where d.id > p_after and d.id <= v_to and (p_queue is null or d.queue = p_queue)
                and (p_channel is null or d.channel = p_channel) and (p_kind is null or d.kind = p_kind)
            order by d.id limit p_limit);
    elsif p_state = 'leased' then
        v_ids := array(
            select l.message_id from lease l
            cross join lateral (select k.queue, k.channel, k.kind from message k where k.id = l.message_id offset 0) m
            where l.message_id > p_after and l.message_id <= v_to and (p_queue is null or m.queue = p_queue)
                and (p_channel is null or m.channel = p_channel) and (p_kind is null or m.kind = p_kind)
            order by l.message_id limit p_limit);
    elsif v_channel_id is not null then
        v_ids := array(
            select m.id from (select k.* from message k where k.channel_id = v_channel_id offset 0) m
            where m.id > p_after and (m.part is null or m.part not in (select p.id from staged_part p))
                and (p_kind is null or m.kind = p_kind)
                and (p_state is null
                    or (m.due > v_now) = (p_state = 'scheduled')
                        and not exists (select from lease l where l.message_id = m.id offset 0))
            order by m.id limit p_limit);
    else
        v_ids := array(
            select m.id from message m
            where m.id > p_after and m.id <= v_to and (m.part is null or m.part not in (select p.id from staged_part p))
                and (p_queue is null or m.queue = p_queue) and (p_channel is null or m.channel = p_channel)
                and (p_kind is null or m.kind = p_kind)
                and (p_state is null
                    or (m.due > v_now) = (p_state = 'scheduled')
                        and not exists (select from lease l where l.message_id = m.id offset 0))
            order by m.id limit p_limit);
    end if;
    if cardinality(v_ids) = p_limit then
        v_next := v_ids[p_limit];
    end if;
    v_looked := coalesce(v_looked, cardinality(v_ids));

    if cardinality(v_ids) = 0 and v_next is not null then
        next := v_next;
        looked := v_looked;
        return next;
    elsif p_state = 'dead' then
        return query
        select d.id, d.queue, d.channel, d.kind, substr(d.key, 17), 'dead', d.priority, null::timestamptz,
            d.published_at, d.first_published_at, null::timestamptz, d.attempt, d.max_attempts,
            d.content_type, d.headers, octet_length(d.payload)::bigint, null::bigint, null::text,
            null::timestamptz, null::timestamptz, d.died_at, d.reason, d.error_type, d.error, v_next, v_looked
        from dead d where d.id = any(v_ids)
        order by d.id;
    else
        return query
        select m.id, m.queue, m.channel, m.kind, substr(m.key, 17),
            case when l.fence is not null then 'leased' when m.due > v_now then 'scheduled' else 'waiting' end,
            m.priority, m.due, m.published_at, m.first_published_at, m.expires_at,
            case when l.fence is null then m.attempt else m.attempt + 1 end, m.max_attempts,
            m.content_type, m.headers, octet_length(m.payload)::bigint, l.fence, l.worker, l.claimed_at, l.until,
            null::timestamptz, null::text, null::text, null::text, v_next, v_looked
        from message m left join lease l on l.message_id = m.id
        where m.id = any(v_ids)
        order by m.id;
    end if;
end
$$;
