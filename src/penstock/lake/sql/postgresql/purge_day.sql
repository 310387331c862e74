select {schema}.purge_day_v1({lake}, {day}::date)
