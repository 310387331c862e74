select {schema}.keep_staged_v1({job})
