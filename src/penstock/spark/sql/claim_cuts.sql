-- The last place in each batch: places before it may be missing, if tasks took those messages over.
select i.seq, max(i.place)
from {schema}.stream_item i
where i.stream = {stream} and i.seq > {from_seq} and i.seq <= {to_seq}
group by i.seq
order by i.seq
