select t.* from {schema}.take_stream_v1({stream}, {ids}::bigint[], {fences}::bigint[]) t
