"""A worker's handlers on Spark's executors."""
