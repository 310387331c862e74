select {schema}.partition_v1({day}::timestamptz)
