-- Where to cut the ids so that each part has as many rows.
select p.id
from (
    select h.id, row_number() over (order by h.id) as place
    from {schema}.message_v1 h
    where {filters} and h.id > {from_id} and h.id <= {to_id}
) p
where p.place % {rows} = 0
order by p.place
