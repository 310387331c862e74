"""Spark looks for top-level modules named ``pyspark_…`` and registers their ``DefaultSource``: with
the package installed, ``format("laneway")`` needs no registration."""

from laneway.spark.source import LanewaySource as DefaultSource

__all__ = ["DefaultSource"]
