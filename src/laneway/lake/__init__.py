"""The history as a lake of Parquet files: synced, verified, purged, and reported on.

>>> lake = Lake("postgresql://localhost/shop", "/srv/lake")
>>> lake.sync(), lake.verify()
>>> lake.report().page

Importing this package imports neither pyspark nor pyarrow; see docs/reference/lake.md.
"""

from .lake import Lake

__all__ = ["Lake"]
