"""Dead letters by kind and error, from a laptop without Java, over Spark Connect.

SPARK_REMOTE=sc://spark.internal DATABASE_URL=postgresql://db/shop python examples/spark_connect.py

The server's processes read the database: the URL must be one that they can reach.
"""

import os

from pyspark.sql import DataFrame

from laneway.spark import session


def dead_by_error(url: str) -> DataFrame:
    spark = session()
    letters = spark.read.format("laneway").options(url=url, what="dead_letters").load()
    return letters.groupBy("kind", "error_type").count().orderBy("kind", "error_type")


if __name__ == "__main__":
    for row in dead_by_error(os.environ["DATABASE_URL"]).collect():
        print(row.kind, row.error_type, row["count"])
