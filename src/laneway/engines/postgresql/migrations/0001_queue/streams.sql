-- Streams: consumers that take messages in batches, and complete a batch as a whole once it is safe
-- elsewhere. Spark's are the first.

-- One row a stream. epoch rises whenever a new process takes the stream over; what an older one still
-- sends is refused. query is new whenever a stream begins without a checkpoint: batches are numbered
-- inside it, and a checkpoint of another query is refused.
create table "laneway".stream (
    name text collate "C" primary key,
    epoch bigint not null,
    query text not null,
    opened_at timestamptz not null default clock_timestamp()
);

-- What is in which batch: sealed when it is claimed, deleted when it is completed. So a batch can be
-- read again, exactly as it was, while its leases last.
create table "laneway".stream_item (
    stream text collate "C" not null,
    seq bigint not null,
    place integer not null,
    message_id bigint not null,
    fence bigint not null,
    primary key (stream, seq, place)
);
create index stream_item_lease on "laneway".stream_item (message_id, fence);
alter table "laneway".stream_item set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- open: take over a stream. Its earlier owner is refused from now on. Answers the epoch to pass to the
-- other verbs, and the query that the stream's batches belong to.
create or replace function "laneway".open_stream_v1(
    p_stream text, p_lease interval, out epoch bigint, out query text
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
begin
    perform pg_advisory_xact_lock(hashtextextended(current_schema() || '.stream.' || p_stream, 0));
    insert into stream as s (name, epoch, query) values (p_stream, 1, '')
    on conflict (name) do update set epoch = s.epoch + 1, opened_at = clock_timestamp()
    returning s.epoch, s.query into epoch, query;
    perform extend_stream_v1(p_stream, epoch, query, p_lease);
end
$$;

-- begin: the stream starts without a checkpoint. What an earlier query left in batches that nobody
-- will ask for again goes back to its channels. Locks items, then leases: what a task takes over at
-- this moment (take_stream_v1) is either its own or given back.
create or replace function "laneway".begin_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_new_query text
) returns bigint
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    perform 1 from stream_item i where i.stream = p_stream order by i.seq, i.place for update;
    select array_agg(l.message_id), array_agg(l.fence) into v_ids, v_fences
    from stream_item i join lease l on l.message_id = i.message_id and l.fence = i.fence
    where i.stream = p_stream;
    if v_ids is not null then
        perform give_back_v1(v_ids, v_fences);
    end if;
    delete from stream_item i where i.stream = p_stream;
    update stream s set query = p_new_query where s.name = p_stream;
    return coalesce(cardinality(v_ids), 0);
end
$$;

-- Part of every verb of a stream: one at a time, and only for the process that opened it last.
--
-- The lock is an advisory one of the transaction: unlike a row's it takes no transaction number, which
-- claim_v1 needs for its floors, and an idle claim writes nothing.
create or replace function "laneway".hold_stream_v1(p_stream text, p_epoch bigint, p_query text)
returns void
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_stream stream;
begin
    perform pg_advisory_xact_lock(hashtextextended(current_schema() || '.stream.' || p_stream, 0));
    select s.* into v_stream from stream s where s.name = p_stream;
    if v_stream.epoch is distinct from p_epoch then
        raise exception 'stream % was taken over by another query', p_stream
            using errcode = 'PNE01', hint = 'Run one query at a time under a stream''s name.';
    end if;
    if v_stream.query is distinct from p_query then
        raise exception 'the checkpoint is not the one of stream %', p_stream
            using errcode = 'PNE01', hint = 'Another query began this stream anew. Choose another name, or start without the checkpoint.';
    end if;
end
$$;

-- claim for a stream: take messages under leases as claim_v1 does, by its rules, and seal them as batch
-- p_seq. A batch that was sealed before is answered as it is ('sealed').
--
-- Keeps: only the stream's present owner claims; a batch is sealed in the transaction that claims it.
-- p_floors: claim_v1's memory, as the last call answered it (see the statement claim in claim.sql).
create or replace function "laneway".claim_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_seq bigint, p_queues text[], p_limit integer,
    p_lease interval, p_floors text default null,
    out n bigint, out answer text, out floors text
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    n := (select count(*) from stream_item i where i.stream = p_stream and i.seq = p_seq);
    if n > 0 or p_limit < 1 then
        answer := case when n > 0 then 'sealed' else 'empty' end;
        floors := p_floors;
        return;
    end if;
    with taken as materialized (
        select c.id, c.fence, c.answer, row_number() over () as place,
            case when c.id is null then json_build_array(
                c.turn_floor, c.wake_floor, coalesce(c.open_xids, '{}'), coalesce(c.open_turns, '{}'),
                coalesce(c.open_wakes, '{}'), c.contended, c.life)::text end as floors
        from claim_v1(
            p_queues, p_limit, p_lease, 'stream ' || p_stream,
            p_turn_floor => (p_floors::json ->> 0)::timestamptz,
            p_wake_floor => (p_floors::json ->> 1)::timestamptz,
            p_open_xids => array(select x::bigint from json_array_elements_text(p_floors::json -> 2) x),
            p_open_turns => array(select x::timestamptz from json_array_elements_text(p_floors::json -> 3) x),
            p_open_wakes => array(select x::timestamptz from json_array_elements_text(p_floors::json -> 4) x),
            p_contended => coalesce((p_floors::json ->> 5)::boolean, false),
            p_life => (p_floors::json ->> 6)::bigint) c
    ),
    sealed as (
        insert into stream_item (stream, seq, place, message_id, fence)
        select p_stream, p_seq, t.place, t.id, t.fence from taken t where t.id is not null
    )
    select count(t.id), max(t.answer), max(t.floors) into n, answer, floors from taken t;
end
$$;

-- take: a task takes over messages of a stream's batches, to settle each one itself. From now on the
-- stream neither extends nor completes them.
--
-- Keeps: whoever deletes the item has the message, so of two attempts of one task only one gets it. It is
-- found by its lease, in any stream and epoch: a task of an older owner is as good as any other, if it is
-- the first. Locks items.
create or replace function "laneway".take_stream_v1(p_ids bigint[], p_fences bigint[])
returns table (
    id bigint, fence bigint, queue text, channel text, kind text, priority smallint, attempt bigint,
    max_attempts integer, due double precision, published_at double precision,
    first_published_at double precision, expires_at double precision, key text, content_type text,
    headers text, state_type text, state bytea, payload bytea, spent integer,
    claimed_at timestamptz, until timestamptz, time_left double precision)
language plpgsql
set search_path = "laneway", pg_temp
as $$
#variable_conflict use_column
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    with wanted as materialized (
        select i.stream, i.seq, i.place
        from stream_item i join unnest(p_ids, p_fences) w(id, fence) on w.id = i.message_id and w.fence = i.fence
        order by i.stream, i.seq, i.place for update of i
    ),
    taken as (
        delete from stream_item i using wanted w
        where i.stream = w.stream and i.seq = w.seq and i.place = w.place
        returning i.message_id, i.fence, i.seq, i.place
    )
    select array_agg(t.message_id order by t.seq, t.place), array_agg(t.fence order by t.seq, t.place)
    into v_ids, v_fences from taken t;
    return query
    select m.id, l.fence, m.queue, m.channel, m.kind, m.priority, m.attempt + 1, m.max_attempts,
        extract(epoch from m.due)::double precision, extract(epoch from m.published_at)::double precision,
        extract(epoch from m.first_published_at)::double precision, extract(epoch from m.expires_at)::double precision,
        substr(m.key, 17), m.content_type, m.headers::text, m.state_type, m.state, m.payload, m.spent,
        l.claimed_at, l.until, extract(epoch from l.until - clock_timestamp())::double precision
    from unnest(v_ids, v_fences) with ordinality t(id, fence, place)
    join lease l on l.message_id = t.id and l.fence = t.fence
    join message m on m.id = t.id
    order by t.place;
end
$$;

-- extend a stream: hold every lease of its batches for p_lease from now on; never shortens one.
-- Locks leases in id order. Answers how many are held, and how many were lost.
create or replace function "laneway".extend_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_lease interval, out held bigint, out lost bigint
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    with ours as materialized (
        select l.message_id
        from stream_item i join lease l on l.message_id = i.message_id and l.fence = i.fence
        where i.stream = p_stream
        order by l.message_id for update of l
    )
    update lease l set until = greatest(l.until, clock_timestamp() + p_lease)
    from ours o where l.message_id = o.message_id;
    get diagnostics held = row_count;
    lost := (select count(*) from stream_item i where i.stream = p_stream) - held;
end
$$;

-- complete for a stream: the batches up to p_through are safe elsewhere; their messages end.
--
-- Keeps: only the stream's present owner completes, and only what its leases still hold: the others
-- are lost and recorded as every late completion is. Safe to repeat. Locks items,
-- then leases: what a task takes over at this moment (take_stream_v1) is either its own or completed.
create or replace function "laneway".complete_stream_v1(
    p_stream text, p_epoch bigint, p_query text, p_through bigint, out completed bigint, out lost bigint
)
language plpgsql
set search_path = "laneway", pg_temp
as $$
declare
    v_ids bigint[];
    v_fences bigint[];
begin
    perform hold_stream_v1(p_stream, p_epoch, p_query);
    perform 1 from stream_item i where i.stream = p_stream and i.seq <= p_through order by i.seq, i.place for update;
    select array_agg(i.message_id), array_agg(i.fence) into v_ids, v_fences
    from stream_item i where i.stream = p_stream and i.seq <= p_through;
    completed := 0;
    lost := 0;
    if v_ids is null then
        return;
    end if;
    lost := (select count(*) from complete_v1(v_ids, v_fences));
    completed := cardinality(v_ids) - lost;
    delete from stream_item i where i.stream = p_stream and i.seq <= p_through;
end
$$;

-- What is in a stream's batches, as far as its leases still hold it.
create view "laneway".stream_message_v1 as
select i.stream, i.seq, i.place, m.id, m.queue, m.channel, m.kind, substr(m.key, 17) as key, m.priority, m.due, m.published_at,
    m.first_published_at, m.expires_at, m.attempt + 1 as attempt, m.max_attempts, m.content_type, m.headers,
    octet_length(m.payload)::bigint as payload_size, m.payload, m.state_type, m.state, l.fence, l.claimed_at, l.until
from "laneway".stream_item i
join "laneway".lease l on l.message_id = i.message_id and l.fence = i.fence
join "laneway".message m on m.id = i.message_id;

create view "laneway".stream_v1 as
select s.name, s.epoch, s.opened_at,
    (select count(*) from "laneway".stream_item i where i.stream = s.name) as held
from "laneway".stream s;
