"""All that can be done with a lake, as one object; heavy imports happen when they are needed."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.drivers.choice import driver_of
from penstock.errors import DriverMissing, InvalidOption, LakeMismatch

from .faults import plainly

if TYPE_CHECKING:
    from .books import Books
    from .compact import Compacted
    from .folder import Folder
    from .purge import Day
    from .report import Report
    from .settings import Objective
    from .status import Status
    from .sync import Synced
    from .verify import Verified

Progress = Callable[[str], None]
KEEP = timedelta(days=30)


class Lake:
    """A folder of Parquet files, and its books in the queue's database.

    ``root`` is a local path or a URI that Arrow knows. Without ``url`` only reports can be made.
    ``name`` tells the lakes of one queue apart. ``say`` is told how it goes.
    """

    def __init__(
        self,
        url: str | None,
        root: str | Path,
        *,
        schema: str = "penstock",
        name: str = "lake",
        say: Progress = lambda text: None,
    ) -> None:
        self._url, self._schema, self._name, self._say = url, schema, name, say
        try:
            from .folder import Folder
        except ImportError as error:
            raise DriverMissing(
                f'the lake needs: pip install "penstock[lake]" ({error})'
            ) from error
        self._folder = Folder(str(root))

    @property
    def folder(self) -> "Folder":
        return self._folder

    @property
    def books(self) -> "Books":
        if self._url is None:
            raise InvalidOption("which queue? The lake's books are in its database: give a url")
        return _books(self._url, self._schema, self._name)

    @plainly()
    def sync(self, batch_rows: int | None = None) -> "Synced":
        """Writes what is settled and not yet in the lake."""
        from .root import check_is_of, check_may_be_lake
        from .sync import BATCH_ROWS, sync

        check_may_be_lake(self._folder)
        check_is_of(self.books, self._folder)
        return sync(self.books, self._folder, batch_rows=batch_rows or BATCH_ROWS, say=self._say)

    @plainly()
    def verify(self, everything: bool = False) -> "Verified":
        """Reads files back; what is damaged is written again by the next sync."""
        from .root import check_owner
        from .verify import verify

        check_owner(self.books, self._folder)
        return verify(self.books, self._folder, everything=everything, say=self._say)

    @plainly()
    def purge(self, keep: timedelta = KEEP, *, dry_run: bool = False) -> "list[Day]":
        """Drops days of history older than ``keep`` that the lake holds for certain."""
        from .purge import purge
        from .root import check_is_of

        check_is_of(self.books, self._folder)
        return purge(self.books, self._folder, keep=keep, dry_run=dry_run, say=self._say)

    @plainly()
    def compact(self, older: timedelta = timedelta(days=2)) -> "Compacted":
        """One file a day, for days older than that."""
        from .compact import compact
        from .root import check_is_of

        check_is_of(self.books, self._folder)
        return compact(self.books, self._folder, older=older, say=self._say)

    def status(self) -> "Status":
        from .status import status

        return status(self.books)

    @plainly()
    def report(self, objective: "Objective | None" = None, note: str | None = None) -> "Report":
        """Tables and the page, on Spark: the running session, or a local one."""
        from penstock.spark import session

        from .report import report
        from .root import check_is_lake

        check_is_lake(self._folder)
        self._say("starting Spark")
        try:
            # Of its own: it has settings and views that are not the running one's.
            spark = session("lake").newSession()
            return report(spark, self._folder, objective=objective, say=self._say, note=note)
        except Exception as error:
            if not _is_of_spark(error):
                raise
            raise LakeMismatch(_failed(error)) from None


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _failed(error: Exception) -> str:
    from penstock.spark.faults import reason

    return f"the report could not be computed: {reason(error)}; penstock lake verify checks files"


def _books(url: str, schema: str, name: str) -> "Books":
    driver = driver_of(url)
    plain = driver.dialect + url[url.index("://") :]
    if driver.dialect == "postgresql":
        from .postgresql_books import PostgresqlBooks

        return PostgresqlBooks(plain, schema, name)
    from .plain_books import PlainBooks

    return PlainBooks(plain, schema, name)
