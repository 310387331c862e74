-- Part of counting: the messages with ids after p_after and up to p_to, which are all decided, and those of bulk
-- publishes below p_before. One snapshot shows each in one place: among the messages, the dead letters or, ended, in the
-- history. The rows of a bulk publish got their ids long before they were published, so it leaves a row
-- of its own (staged_count), by which they are told apart: same time, and an id that was given before.
create or replace function "laneway".count_published_v1(p_after bigint, p_to bigint, p_before bigint, p_exact boolean)
returns void
language sql
set search_path = "laneway", pg_temp
as $$
    with found as (
        select m.id, m.queue, m.kind, m.first_published_at from message m where m.id > p_after and m.id <= p_to
        union all
        select d.id, d.queue, d.kind, d.first_published_at from dead d where d.id > p_after and d.id <= p_to
        union all
        select h.message_id, h.queue, h.kind, h.first_published_at from history h
        where h.message_id > p_after and h.message_id <= p_to and h.terminal
    ),
    staged as (
        update staged_count s set counted = true where not s.counted and s.xid < p_before
        returning s.queue, s.kind, s.at, s.n
    ),
    published as materialized (
        select p.queue, p.kind, p.at, sum(p.n) as n from (
            select f.queue, f.kind, date_trunc('minute', f.first_published_at, 'UTC') as at, count(*) as n from found f
            where not exists (select from staged_count s where s.at = f.first_published_at and f.id <= s.last_id)
            group by 1, 2, 3
            union all
            select s.queue, s.kind, date_trunc('minute', s.at, 'UTC'), s.n from staged s
        ) p
        group by p.queue, p.kind, p.at
    ),
    kept as (
        insert into live_count as k (queue, kind, live, dead)
        select p.queue, p.kind, sum(p.n), 0 from published p group by p.queue, p.kind
        on conflict (queue, kind) do update set live = k.live + excluded.live
    )
    insert into minute as m (span, at, queue, kind, published, exact)
    select s.span, date_trunc(s.unit, p.at, 'UTC'), p.queue, p.kind, sum(p.n), p_exact
    from published p cross join (values (1::smallint, 'minute'), (60, 'hour')) s(span, unit)
    group by 1, 2, 3, 4
    on conflict (span, at, queue, kind) do update
    set published = m.published + excluded.published, exact = m.exact and excluded.exact
$$;
