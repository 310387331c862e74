delete from {schema}.lake_file f where f.lake = {lake} and f.path = any({paths}::text[])
