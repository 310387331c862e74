"""The worker that tests start by its name; the database is in the environment."""

import os
from datetime import timedelta

from tests.spark.jobs import make_worker

worker = make_worker(
    os.environ["TEST_URL"],
    os.environ["TEST_SCHEMA"],
    concurrency=4,
    lease=timedelta(seconds=6),
)
