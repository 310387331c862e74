copy {schema}.{table} ({columns}) from stdin (format csv, encoding 'UTF8')
