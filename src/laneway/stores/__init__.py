"""Short-lived connections for Spark and the lake: one way to run named statements on any database.

>>> with open_store(store_address(url, "laneway"), "laneway.lake") as store:
...     store.ask("clock")

A driver is imported when a store of its database is opened.
"""

from .store import Store, StoreAddress, open_store, store_address

__all__ = ["Store", "StoreAddress", "open_store", "store_address"]
