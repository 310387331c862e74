-- How many messages are sealed in each batch.
select i.seq, count(*)
from {schema}.stream_item i
where i.stream = {stream} and i.seq > {from_seq} and i.seq <= {to_seq}
group by i.seq
order by i.seq
