-- Where to cut the ids so that each part has as many rows; the last one ends at the last row.
select p.id
from (
    select h.id, row_number() over (order by h.id) as place, count(*) over () as n
    from {view} h
    where {where}
) p
where p.place %% %(rows)s = 0 or p.place = p.n
order by p.id
