"""History → lake → answers: the history as Parquet, checked and purged, and reports over it.

>>> lake = Lake("postgresql://localhost/shop", "/srv/lake")
>>> lake.sync(), lake.verify()
>>> lake.report().page

Importing this package imports neither pyspark nor pyarrow; see docs/reference/lake.md.
"""

from .lake import Lake, demo_report

__all__ = ["Lake", "demo_report"]
