select t.* from {schema}.take_stream_v1({ids}::bigint[], {fences}::bigint[]) t
