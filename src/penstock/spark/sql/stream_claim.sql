select c.n, c.answer, c.floors
from {schema}.claim_stream_v1(
    {stream}, {epoch}, {query}, {seq}, array[{queue}], {limit}, {lease}::interval, {floors}::text) c
