"""History → lake → answers: the history as Parquet, checked and purged, and reports over it.

>>> lake = Lake("postgresql://localhost/shop", "/srv/lake")
>>> lake.sync(), lake.verify()
>>> lake.report().page

Importing this package imports neither pyspark nor pyarrow; see docs/reference/lake.md.
"""

from .demonstration import demo_report
from .lake import Lake

__all__ = ["Lake", "demo_report"]
