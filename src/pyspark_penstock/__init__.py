"""Spark looks for top-level modules named ``pyspark_…`` and registers their ``DefaultSource``: with
the package installed, ``format("penstock")`` needs no registration."""

from penstock.spark.source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
