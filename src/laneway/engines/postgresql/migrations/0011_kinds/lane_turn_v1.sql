-- Part of claim: the first turn among these lanes (null: all) of a token.
create or replace function "laneway".lane_turn_v1(p_slots text[], p_turns timestamptz[], p_lanes text[])
returns timestamptz
language sql immutable parallel safe
as $$
    select min(s.turn) from unnest(p_slots, p_turns) s(slot, turn)
    where p_lanes is null or s.slot = any(p_lanes) or s.slot = '*'
$$;
