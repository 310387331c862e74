select {schema}.hold_stream_v1({stream}, {epoch}, {query})
