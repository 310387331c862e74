-- Claims of some kinds only: docs/decisions/0016-claims-by-kind.md.

-- From now on these queues can be claimed by kind. Answers whether all that waits in them can be found so; a
-- caller who hears no asks again before its next claims.
--
-- Keeps: publishers see the row of kind_queue or have a transaction number below its horizon, because every
-- verb that appends wakes takes its number first (write_time_v1). What they append meanwhile has no lane; once
-- they have ended, a last look gives it one. Claims that did not see the row have ended when this returns:
-- they share a lock that this takes alone, as pause_queue_v1 does. Their channels get a wake.
--
-- Locks: the queues' advisory locks, in order of their names. Called again it waits for nobody.
create or replace function "laneway".by_kind_v1(p_queues text[], p_now timestamptz default null)
returns boolean
language plpgsql
set search_path = "laneway", pg_temp
set lock_timeout = '10s'
set jit = off
as $$
declare
    v_now timestamptz;
    v_queue text;
    v_row "laneway".kind_queue;
    v_old boolean;
    v_all boolean := true;
begin
    perform check_names_v1('queue', p_queues);
    for v_queue in
        select distinct q.name from unnest(p_queues) q(name)
        where not exists (select from kind_queue k where k.queue = q.name and k.settled) order by q.name
    loop
        v_all := false;
        if not exists (select from kind_queue k where k.queue = v_queue) then
            perform pg_advisory_xact_lock(hashtextextended(v_queue, 'pause'::regclass::oid::bigint));
            continue when exists (select from kind_queue k where k.queue = v_queue);
            v_now := write_time_v1(p_now);
            insert into kind_queue (queue) values (v_queue);
            insert into wake (at, channel_id, due, message_id, n, priority, queue, channel, lane)
            select v_now, t.channel_id, v_now, 0, 0, 0, t.queue, c.name, '-'
            from token t join channel c on c.id = t.channel_id
            where t.queue = v_queue and (t.turn is not null or t.n <> 0 or t.pri <> '{}');
        else
            select k.* into v_row from kind_queue k where k.queue = v_queue and not k.settled for update skip locked;
            continue when not found;
            v_old := pg_snapshot_xmin(pg_current_snapshot())::text::bigint > v_row.horizon;
            if v_row.horizon is null then
                update kind_queue k set horizon = pg_current_xact_id()::text::bigint where k.queue = v_queue;
            elsif v_old then
                update kind_queue k set settled = true where k.queue = v_queue;
            end if;
        end if;
        -- What a claim is consuming now is locked: it has seen it.
        update wake w set lane = '-' where w.ctid = any(array(
            select k.ctid from wake k where k.queue = v_queue and k.lane = '' for update skip locked));
    end loop;
    return v_all;
end
$$;

-- Part of claim: messages that were published before their queue was claimed by kind, from now on found by
-- their kinds: of each channel and priority the next thousand that are due. Answers positions: of the lanes
-- that got messages, and of '-' where more are left.
--
-- Keeps: the caller has locked the channels, so nobody else claims or moves these messages.
create or replace function "laneway".claim_move_v1(
    p_owned uuid[], p_wakes tid[], p_now timestamptz,
    out channels uuid[], out lanes text[], out pri smallint[], out due timestamptz[], out mid bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with start as materialized (
        select distinct on (s.channel_id, s.priority) s.channel_id, s.priority, s.due, s.mid
        from (
            select o.id as channel_id, p.priority, p.due, p.mid
            from unnest(p_owned) o(id) cross join lateral token_of_v1(o.id) t
            cross join unnest(t.pri, t.due, t.mid, t.lanes) p(priority, due, mid, lane)
            where coalesce(p.lane, '-') = '-'
            union all
            select w.channel_id, w.priority, min(w.due), min(w.message_id - 1)
            from wake w where w.ctid = any(p_wakes) and w.n > 0 and w.lane in ('', '-')
                and (w.channel_id in (select o from unnest(p_owned) o)) is true
            group by w.channel_id, w.priority
        ) s
        order by s.channel_id, s.priority, s.due, s.mid
    ),
    picked as materialized (
        select s.channel_id, s.priority, m.*, count(*) over (partition by s.channel_id, s.priority) as n
        from start s cross join lateral (
            select k.ctid as tid, k.id, k.due, '=' || k.kind as lane
            from message k
            where k.channel_id = s.channel_id and k.priority = s.priority and (k.due, k.id) > (s.due, s.mid)
                and k.due <= p_now and k.by_kind is not true
                and (k.part is null or k.part not in (select p.id from staged_part p))
                and not exists (select from lease e where e.message_id = k.id offset 0)
            order by k.due, k.id limit 1000
        ) m
    ),
    moved as (
        update message m set by_kind = true where m.ctid = any(array(select p.tid from picked p))
    ),
    position as (
        (select distinct on (p.channel_id, p.priority, p.lane) p.channel_id, p.lane, p.priority, p.due, p.id - 1 as mid
        from picked p order by p.channel_id, p.priority, p.lane, p.due, p.id)
        union all
        (select distinct on (p.channel_id, p.priority) p.channel_id, '-', p.priority, p.due, p.id
        from picked p where p.n = 1000 order by p.channel_id, p.priority, p.due desc, p.id desc)
    )
    select array_agg(p.channel_id), array_agg(p.lane), array_agg(p.priority), array_agg(p.due), array_agg(p.mid)
    into channels, lanes, pri, due, mid from position p;
end
$$;

-- Part of claim: what startable_v1 answers, of one kind of a queue that is claimed by kind.
create or replace function "laneway".startable_kind_v1(
    p_channel_id uuid, p_kind text, p_priority smallint, p_due timestamptz, p_mid bigint, p_now timestamptz
) returns table (message "laneway".message, id bigint, due timestamptz)
language sql stable
as $$
    select k, k.id, k.due
    from "laneway".message k
    where k.by_kind and k.channel_id = p_channel_id and k.kind = p_kind and k.priority = p_priority
        and (k.due, k.id) > (p_due, p_mid) and k.due <= p_now
        and (k.expires_at is null or k.expires_at > p_now)
        and (k.part is null or k.part not in (select p.id from "laneway".staged_part p))
        and not exists (select from "laneway".lease e where e.message_id = k.id offset 0)
$$;

-- Part of claim: a channel's token with its lanes. See latest_token_v1.
create or replace function "laneway".token_of_v1(p_channel_id uuid)
returns table (
    tid tid, version bigint, turn timestamptz, n bigint, leased bigint, tat timestamptz, credit double precision,
    skips bigint, lanes text[], pri smallint[], due timestamptz[], mid bigint[], slots text[], turns timestamptz[],
    used double precision, cost double precision, since timestamptz
)
language sql stable
as $$
    select k.ctid, k.version, k.turn, k.n, k.leased, k.tat, k.credit, k.skips, k.lanes, k.pri, k.due, k.mid, k.slots, k.turns,
        k.used, k.cost, k.since
    from "laneway".token k where k.channel_id = p_channel_id order by k.version desc limit 1
$$;

-- Part of claim: of two sets of positions, one for each lane and priority, the lower ones.
create or replace function "laneway".lowest_lanes_v1(p "laneway".lanes_v1, q "laneway".lanes_v1)
returns "laneway".lanes_v1
language sql immutable
as $$
    select array_agg(x.lane), array_agg(x.pri), array_agg(x.due), array_agg(x.mid)
    from (
        select distinct on (x.lane, x.pri) x.lane, x.pri, x.due, x.mid
        from (
            select * from unnest(p.lanes, p.pri, p.due, p.mid)
            union all
            select * from unnest(q.lanes, q.pri, q.due, q.mid)
        ) x(lane, pri, due, mid)
        order by x.lane, x.pri, x.due, x.mid
    ) x
$$;

-- Part of claim: the positions of a channel after its first p_taken messages (of those that
-- claim_pick_kinds_v1 found) were taken: the last one taken after each. A position after which nothing is
-- left is dropped.
create or replace function "laneway".advanced_lanes_v1(
    p "laneway".lanes_v1, p_seen bigint[], p_which integer[], p_dues timestamptz[], p_ids bigint[], p_taken bigint
) returns "laneway".lanes_v1
language sql immutable
as $$
    select array_agg(b.lane), array_agg(b.pri), array_agg(b.due), array_agg(b.mid)
    from (
        select b.lane, b.pri, coalesce(t.due, b.due) as due, coalesce(t.id, b.mid) as mid
        from unnest(p.lanes, p.pri, p.due, p.mid, p_seen) with ordinality b(lane, pri, due, mid, seen, number)
        left join (
            select distinct on (t.number) t.number, t.due, t.id, count(*) over (partition by t.number) as n
            from unnest(p_which[1 : p_taken], p_dues[1 : p_taken], p_ids[1 : p_taken]) t(number, due, id)
            order by t.number, t.due desc, t.id desc
        ) t on t.number = b.number
        where b.seen is null or b.seen > coalesce(t.n, 0)
    ) b
$$;

-- Part of claim: the lanes of a token that have work, and when the turn of each comes.
--
-- p_of: the lanes of its positions. p_lanes: those that were served now, null: all; they go behind others,
-- unless their visit was cut short (p_kept). A lane that was not served keeps its turn, a new one joins at
-- the end. p_turn: a time at which the whole channel may start something again, if it may not now.
create or replace function "laneway".next_slots_v1(
    p_of text[], p_lanes text[], p_kept boolean, p_slots text[], p_turns timestamptz[], p_turn timestamptz, p_now timestamptz
) returns "laneway".slots_v1
language sql immutable
as $$
    with lane as (
        select l.lane, row_number() over (order by l.lane) as number, count(*) over () as n,
            coalesce(p_turn, case when p_kept or not (p_lanes is null or l.lane = any(p_lanes)) then
                least(coalesce(
                    (select o.turn from unnest(p_slots, p_turns) o(slot, turn) where o.slot = l.lane),
                    (select o.turn from unnest(p_slots, p_turns) o(slot, turn)
                    where o.slot = '*' and l.lane > coalesce(p_slots[3], ''))), p_now) else p_now end) as turn
        from (select distinct x.lane from unnest(p_of) x(lane)) l
    ),
    slot as (
        select case when l.number > 3 and l.n > 4 then 4 else l.number end as number,
            case when l.number > 3 and l.n > 4 then '*' else l.lane end as slot, l.turn
        from lane l
    )
    select array_agg(s.slot order by s.number), array_agg(s.turn order by s.number)
    from (select s.number, s.slot, min(s.turn) as turn from slot s group by s.number, s.slot) s
$$;

-- Part of claim: the first turn among these lanes (null: all) of a token.
create or replace function "laneway".lane_turn_v1(p_slots text[], p_turns timestamptz[], p_lanes text[])
returns timestamptz
language sql immutable parallel safe
as $$
    select min(s.turn) from unnest(p_slots, p_turns) s(slot, turn)
    where p_lanes is null or s.slot = any(p_lanes) or s.slot = '*'
$$;
