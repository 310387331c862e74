"""The lake's catalog, in the queue's database: which part of the history is in which files."""

from .catalog import START, Batch, Catalog, CatalogFile, DayCount, files_of
from .open import open_catalog

__all__ = ["START", "Batch", "Catalog", "CatalogFile", "DayCount", "files_of", "open_catalog"]
