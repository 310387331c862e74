"""Numbers of all queues and workers of a schema for Prometheus; needs the extra ``metrics``.

>>> Exporter(queue).scrape()
"""

from .exporter import Exporter

__all__ = ["Exporter"]
