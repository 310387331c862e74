"""Everything that can be done with a lake, as one object. Imports happen when they are needed.

What the lake has, and how far it is behind.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, LakeMismatch, LanewayError
from laneway.extras import needs
from laneway.names import check_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .catalog import Catalog, RegisteredStream, Tenant
    from .folder import Folder
    from .iceberg import Appended
    from .purge import PurgeDay
    from .report.create import Report
    from .report.tables import Objective
    from .rewrite import Compacted, Erased, TenantData
    from .sync import Synced
    from .verify import Verified


@dataclass(frozen=True, slots=True)
class LakeStatus:
    """``behind``: rows of history that are not in the lake. ``unsettled`` of them may not be read
    yet, because an older transaction is still open. ``kept``: how much history the queue keeps."""

    batches: dict[str, int]
    rows: int
    files: int
    bytes: int
    first_day: date | None
    last_day: date | None
    behind: int
    behind_since: datetime | None
    unsettled: int
    readers: dict[str, datetime]
    kept: str


def _status(catalog: "Catalog") -> LakeStatus:
    batches = catalog.batches()
    files = catalog.files()
    _, end = catalog.last()
    behind, since, unsettled = catalog.behind(end)
    states = [batch.state for batch in batches]
    return LakeStatus(
        batches={state: states.count(state) for state in dict.fromkeys(states)},
        rows=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.size for file in files),
        first_day=min((file.day for file in files), default=None),
        last_day=max((file.day for file in files), default=None),
        behind=behind,
        behind_since=since,
        unsettled=unsettled,
        readers={reader.name: reader.seen_at for reader in catalog.readers()},
        kept=catalog.history_kept(),
    )


@contextmanager
def plainly() -> Iterator[None]:
    """Errors of disks and file systems as our own: a full disk is no reason for a traceback. Staged
    files do not count, so it can be run again."""
    try:
        yield
    except LanewayError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not _is_arrows(error):
            raise
        said = str(error).partition("\n")[0].strip()
        raise LakeMismatch(
            f"the lake's folder cannot be read or written: {said or type(error).__name__}; "
            "fix that and run it again"
        ) from error


def _is_arrows(error: Exception) -> bool:
    """By its module's name: pyarrow is not imported for this."""
    return any(kind.__module__.startswith("pyarrow") for kind in type(error).__mro__)


Progress = Callable[[str], None]
KEEP = timedelta(days=30)


class Lake:
    """A folder of Parquet files, and its catalog in the queue's database.

    ``root`` is a local path or a URI that Arrow can open. Without ``url`` only reports can be made.
    ``name`` tells the lakes of one queue apart. ``say`` is called with messages about progress.
    """

    def __init__(
        self,
        url: str | None,
        root: str | Path,
        *,
        schema: str = "laneway",
        name: str = "lake",
        say: Progress = lambda text: None,
    ) -> None:
        self._url, self._schema, self._name, self._say = url, schema, name, say
        with needs("A lake", "pyarrow", "lake"):
            from .folder import Folder
        self._folder = Folder(str(root))

    @property
    def folder(self) -> "Folder":
        return self._folder

    @property
    def catalog(self) -> "Catalog":
        if self._url is None:
            raise InvalidOption("url is missing: the lake's catalog is in the queue's database")
        from .catalog import open_catalog

        return open_catalog(self._url, self._schema, self._name)

    @plainly()
    def sync(self, batch_rows: int | None = None) -> "Synced":
        """Writes settled rows of history that are not in the lake yet."""
        from .owner import check_is_of, check_may_be_lake
        from .sync import BATCH_ROWS, sync

        check_may_be_lake(self._folder)
        check_is_of(self.catalog, self._folder)
        return sync(self.catalog, self._folder, batch_rows=batch_rows or BATCH_ROWS, say=self._say)

    @plainly()
    def verify(self, everything: bool = False) -> "Verified":
        """Reads files back; the next sync writes damaged ones again."""
        from .owner import check_owner
        from .verify import verify

        check_owner(self.catalog, self._folder)
        return verify(self.catalog, self._folder, everything=everything, say=self._say)

    @plainly()
    def purge(
        self, keep: Duration = KEEP, *, dry_run: bool = False, force: bool = False
    ) -> "list[PurgeDay]":
        """Deletes days of history older than ``keep`` that are verified in the lake, and that all
        registered streams have read, unless ``force``: then such a stream fails when it goes on."""
        from .owner import check_is_of
        from .purge import purge

        check_is_of(self.catalog, self._folder)
        return purge(
            self.catalog,
            self._folder,
            keep=check_duration("keep", keep),
            dry_run=dry_run,
            force=force,
            say=self._say,
        )

    @plainly()
    def compact(self, older: Duration = timedelta(days=2)) -> "Compacted":
        """Merges the files of each day older than that into one."""
        from .owner import check_is_of
        from .rewrite import compact

        check_is_of(self.catalog, self._folder)
        return compact(
            self.catalog, self._folder, older=check_duration("older", older), say=self._say
        )

    @plainly()
    def find_tenant(self, channel: str, *, queue: str | None = None) -> "TenantData":
        """What ``erase`` would delete."""
        from .owner import check_is_of
        from .rewrite import look

        check_is_of(self.catalog, self._folder)
        return look(self.catalog, self._folder, _tenant(channel, queue))

    @plainly()
    def erase(self, channel: str, *, queue: str | None = None, actor: str = "") -> "Erased":
        """Deletes what there is of a tenant's channel, in the database and in this lake, for good:
        messages, dead letters, history, results, and the rows in files. Everything is read again
        afterwards. Refuses while its messages are being worked on; safe to repeat.

        >>> lake.erase("tenant-42").found_again
        0
        """
        from .owner import check_is_of, check_may_be_lake
        from .rewrite import erase

        check_may_be_lake(self._folder)
        check_is_of(self.catalog, self._folder)
        tenant = _tenant(channel, queue)
        return erase(self.catalog, self._folder, tenant, actor=actor, say=self._say)

    @plainly()
    def iceberg(self, table: str, *, catalog: str = "default") -> "Appended":
        """Appends every verified batch once to a table of Apache Iceberg, namespace.name;
        ``catalog`` is a name in pyiceberg's settings. ``erase`` erases there too.

        >>> lake.iceberg("shop.history", catalog="warehouse").rows
        """
        from .iceberg import IcebergTable, append
        from .owner import check_is_of

        check_is_of(self.catalog, self._folder)
        return append(self.catalog, self._folder, IcebergTable(catalog, table), say=self._say)

    def iceberg_sql(self, table: str, channel: str | None = None) -> list[str]:
        """The same as statements for a Spark that has Iceberg, catalog.namespace.name; with
        ``channel`` those that erase it."""
        from .iceberg import erase_sql, spark_sql

        if channel is not None:
            return erase_sql(table, _tenant(channel, None))
        return spark_sql(self.catalog, self._folder, table)

    def status(self) -> LakeStatus:
        return _status(self.catalog)

    def streams(self) -> "list[RegisteredStream]":
        """The registered streams of the history, the slowest first."""
        return self.catalog.readers()

    def forget_stream(self, name: str) -> bool:
        """Nothing is kept for it any more, until it registers again; False if there is none."""
        return self.catalog.forget_reader(name)

    @plainly()
    def report(self, objective: "Objective | None" = None, note: str | None = None) -> "Report":
        """Computes the tables and the page: a small history in this process, a larger one with the
        running Spark session or a local one."""
        from .owner import check_is_lake
        from .report.create import create_report
        from .report.small import is_small

        check_is_lake(self._folder)
        try:
            spark = None if is_small(self._folder) else self._spark()
            return create_report(spark, self._folder, objective=objective, say=self._say, note=note)
        except Exception as error:
            if not _is_of_spark(error):
                raise
            raise LakeMismatch(_failed(error)) from None

    def _spark(self) -> "SparkSession":
        """A session of its own, for its settings and views."""
        from laneway.spark import session

        self._say("starting Spark")
        return session("lake").newSession()


def _tenant(channel: str, queue: str | None) -> "Tenant":
    from .catalog import Tenant

    return Tenant(
        check_name("channel", channel), None if queue is None else check_name("queue", queue)
    )


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _failed(error: Exception) -> str:
    from laneway.spark.errors import reason

    return f"the report could not be computed: {reason(error)}; laneway lake verify checks files"
