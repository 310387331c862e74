select {schema}.stage_v1({job}, {attempt})
