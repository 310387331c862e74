select {schema}.begin_stream_v1({stream}, {epoch}, {query}, {new_query})
