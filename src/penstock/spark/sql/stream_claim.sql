select c.n, c.answer, c.floors
from {schema}.claim_stream_v1(
    {stream}, {epoch}, {query}, {seq}, {queues}::text[], {limit}, {lease}::interval, {floors}::text) c
