-- Part of claim: a channel's token with its lanes. See latest_token_v1.
create or replace function "laneway".token_of_v1(p_channel_id uuid)
returns table (
    tid tid, version bigint, turn timestamptz, n bigint, leased bigint, tat timestamptz, credit double precision,
    skips bigint, lanes text[], pri smallint[], due timestamptz[], mid bigint[], slots text[], turns timestamptz[]
)
language sql stable
as $$
    select k.ctid, k.version, k.turn, k.n, k.leased, k.tat, k.credit, k.skips, k.lanes, k.pri, k.due, k.mid, k.slots, k.turns
    from "laneway".token k where k.channel_id = p_channel_id order by k.version desc limit 1
$$;
