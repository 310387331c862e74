-- What is in a batch, in the order of its claim.
select i.message_id, i.fence
from {schema}.stream_item i
where i.stream = {stream} and i.seq = {seq}
order by i.place
