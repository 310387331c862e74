select c.completed, c.lost from {schema}.complete_stream_v1({stream}, {epoch}, {query}, {through}) c
