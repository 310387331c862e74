copy {schema}.{table} ({columns}) from stdin (format binary)
