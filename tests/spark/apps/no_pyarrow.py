"""Reads with workers that lack pyarrow; prints what the doctor and the error say.

Arguments: URL, schema, the workers' Python. Run by tests/spark/test_failures.py.
"""

import os
import sys

from laneway.spark import doctor, reason, session


def main(url: str, schema: str, python: str) -> None:
    os.environ["PYSPARK_PYTHON"] = python
    spark = session("no pyarrow", master="local[2]")
    print("DOCTOR", doctor(spark)[-1].text)
    try:
        read = spark.read.format("laneway").options(url=url, schema=schema, what="messages")
        read.load().count()
    except Exception as error:
        print("REASON", reason(error))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
