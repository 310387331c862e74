select {schema}.unstage_v1({job}::text, {older}::interval)
