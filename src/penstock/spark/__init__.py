"""Spark on the queue: ``format("penstock")`` for DataFrames and streams, and a session to try it.

>>> spark = penstock.spark.session()
>>> spark.read.format("penstock").option("url", url).load().groupBy("outcome").count().show()

The connector is plain Python on Spark's Python data sources: nothing to register, no jar. Importing
this package does not import pyspark; see docs/reference/spark.md.
"""

from .doctor import Check, doctor
from .faults import reason
from .session import session

__all__ = ["Check", "doctor", "reason", "session"]
