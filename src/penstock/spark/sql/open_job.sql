select {schema}.open_job_v1({job})
