-- Part of claim: a channel's token. Older versions may still be there, dead but not yet vacuumed;
-- the live one has the highest number, so the index is read backwards and one entry is enough.
--
-- The planner puts the body in place of the call (SQL, stable, no SET), so sharing it costs nothing.
create or replace function "laneway".latest_token_v1(p_channel_id uuid)
returns table (
    tid tid, version bigint, turn timestamptz, n bigint, leased bigint, tat timestamptz,
    credit double precision, skips bigint, pri smallint[], due timestamptz[], mid bigint[]
)
language sql stable
as $$
    select k.ctid, k.version, k.turn, k.n, k.leased, k.tat, k.credit, k.skips, k.pri, k.due, k.mid
    from "laneway".token k where k.channel_id = p_channel_id order by k.version desc limit 1
$$;
