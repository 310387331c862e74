-- Part of counting: the sums of two histograms, of which each may be null.
create or replace function "laneway".add_counts_v1(p_one bigint[], p_other bigint[])
returns bigint[]
language sql immutable
as $$
    select case
        when p_one is null then p_other
        when p_other is null then p_one
        else array(select a + b from unnest(p_one, p_other) with ordinality x(a, b, ordinal) order by ordinal) end
$$;
