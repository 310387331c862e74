select o.epoch, o.query from {schema}.open_stream_v1({stream}, {lease}::interval) o
