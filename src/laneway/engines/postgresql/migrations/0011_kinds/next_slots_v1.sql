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
