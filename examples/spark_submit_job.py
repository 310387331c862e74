"""Every order of a day as a message, published once however often the job runs.

spark-submit --master spark://… examples/spark_submit_job.py orders.csv 2026-05-01

The database is in LANEWAY_URL of the driver and the executors; every node has laneway[spark].
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, struct, to_json


def publish(spark: SparkSession, orders: str, day: str, **options: str) -> None:
    frame = spark.read.csv(orders, header=True, inferSchema=True).where(col("day") == day)
    messages = frame.select(
        to_json(struct("id", "total")).alias("payload"),
        col("tenant").alias("channel"),
    )
    writer = messages.write.format("laneway").options(queue="receipts", kind="send_receipt")
    writer.options(idempotency_key=f"orders of {day}", **options).mode("append").save()


if __name__ == "__main__":
    publish(SparkSession.builder.appName("orders").getOrCreate(), sys.argv[1], sys.argv[2])
