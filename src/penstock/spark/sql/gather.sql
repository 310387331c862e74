insert into {schema}.{table} {rows}
