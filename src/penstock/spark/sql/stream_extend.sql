select e.held, e.lost from {schema}.extend_stream_v1({stream}, {epoch}, {query}, {lease}::interval) e
