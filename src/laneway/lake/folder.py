"""The lake's folder, on any file system that Arrow supports.

::

    history/day=2026-11-15/batch=000000000017/part-00000.parquet
    live/snapshot.parquet          messages that had not ended at the last sync
    live/numbers.json              when that was, and the queue's own counts
    report/tables/<table>/…        the report's tables, as Parquet
    report/report.html             the page
    _staging/                      half-written files; readers skip names with an underscore

The messages that had not ended at the last sync.
"""

import json
import os
import posixpath
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from laneway.errors import InvalidOption, LakeMismatch

_ASIDE = "_staging"
_FILE = re.compile(r"history/day=(\d{4}-\d\d-\d\d)/batch=(\d+)/[^_./][^/]*\.parquet")
_WILD = re.compile(r"[][{}*?\\]")
_DAY = pa.schema([("day", pa.date32())])
# What Arrow and Spark's Hadoop call the same store.
_FOR_ARROW = {"s3a": "s3"}
_FOR_SPARK = {"s3": "s3a"}
# A request for each level of a path, for nothing.
_WITHOUT_FOLDERS = ("s3", "gcs")
LIVE_ROWS = "live/snapshot.parquet"
LIVE_NUMBERS = "live/numbers.json"


class LakeFile(NamedTuple):
    """A file of the history: its path under the lake, its day and batch, its size."""

    path: str
    day: str
    batch: int
    size: int


class Folder:
    """A local path or a URI: of a scheme that Arrow opens (``s3``, ``s3a``, ``gs``, ``abfss``,
    ``hdfs``, ``file``), else of one that fsspec does. Parameters after a question mark are Arrow's.

    ``root`` is the same without user, password and parameters, for messages.
    """

    def __init__(self, root: str) -> None:
        self.root = _without_secrets(root).rstrip("/")
        self._fs, self._base = _opened(root.rstrip("/"))

    def __repr__(self) -> str:
        return f"<Folder {self.root}>"

    def url(self, path: str) -> str:
        """The path or URI for Spark and for people."""
        scheme, separator, rest = self.root.partition("://")
        root = f"{_FOR_SPARK.get(scheme, scheme)}://{rest}" if separator else self.root
        return f"{root}/{path}"

    def pattern(self, path: str) -> str:
        """The same as a pattern that matches only this path: Spark's readers take patterns."""
        return _WILD.sub(r"\\\g<0>", self.url(path))

    def history_files(self) -> list[LakeFile]:
        """All Parquet files of the history, ordered by path."""
        files = (_named(path, size) for path, size in self._walk("history"))
        return sorted(file for file in files if file is not None)

    def exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(self._full(path)).type != pafs.FileType.NotFound)

    def names(self, path: str) -> list[str]:
        """The names in a folder; empty if it does not exist."""
        selector = pafs.FileSelector(self._full(path).rstrip("/"), allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def write_table(self, table: pa.Table, path: str) -> int:
        """Writes the whole file or nothing: staged first, then moved. Returns its size."""
        aside, size = self.write_aside(table, path)
        self.move(aside, path)
        return size

    def write_aside(self, table: pa.Table, path: str) -> tuple[str, int]:
        """Writes a staged file that readers skip, with a unique name; returns its path and size."""
        aside = self._aside(path)
        pq.write_table(
            table, self._full(aside), filesystem=self._fs, compression="zstd", store_schema=False
        )
        return aside, int(self._fs.get_file_info(self._full(aside)).size or 0)

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        with self._fs.open_input_file(self._full(path)) as source:
            return pq.ParquetFile(source).read(columns)

    def read_batches(
        self, path: str, rows: int, columns: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a file, so many at a time: it may be larger than the memory."""
        with self._fs.open_input_file(self._full(path)) as source:
            file = pq.ParquetFile(source)
            yield from file.iter_batches(rows, columns=columns, use_threads=False)

    def count(self, path: str) -> int:
        """The number of rows of a file."""
        return int(self._about(path).num_rows)

    def least(self, path: str, column: str) -> Any:
        """The smallest value of a column, from the file's statistics; None if there are none."""
        about = self._about(path)
        place = about.schema.names.index(column)
        groups = (about.row_group(n).column(place).statistics for n in range(about.num_row_groups))
        values = [group.min for group in groups if group is not None and group.has_min_max]
        return min(values, default=None)

    def may_hold(self, path: str, column: str, value: str) -> bool:
        """False if the file's statistics rule out that a row has this value."""
        about = self._about(path)
        place = about.schema.names.index(column)
        groups = (about.row_group(n).column(place).statistics for n in range(about.num_row_groups))
        return any(
            group is None or not group.has_min_max or group.min <= value <= group.max
            for group in groups
        )

    def _about(self, path: str) -> pq.FileMetaData:
        try:
            with self._fs.open_input_file(self._full(path)) as source:
                return pq.ParquetFile(source).metadata
        except (OSError, pa.ArrowException) as error:
            raise LakeMismatch(
                f"{path} is damaged ({error}): run laneway lake verify --all and sync again if its "
                "rows are still in the history; else restore the file from a backup"
            ) from error

    def read_rows(self, path: str) -> list[dict[str, Any]]:
        """All rows of a table of the report, with partitions as columns."""
        found = self.read_dataset(path)
        rows: list[dict[str, Any]] = [] if found is None else found.to_pylist()
        return rows

    def read_dataset(self, path: str) -> pa.Table | None:
        """The same as Arrow; None if it has no files."""
        names = [name for name, _ in self._walk(path) if name.endswith(".parquet")]
        if not names:
            return None
        by_day = any("/day=" in name for name in names)
        dataset = ds.dataset(
            self._full(path),
            filesystem=self._fs,
            format="parquet",
            partitioning=ds.partitioning(_DAY, flavor="hive") if by_day else None,
        )
        return dataset.to_table()

    def write_text(self, text: str, path: str) -> None:
        aside = self._aside(path)
        with self._fs.open_output_stream(self._full(aside)) as target:
            target.write(text.encode())
        self.move(aside, path)

    def read_text(self, path: str) -> str:
        with self._fs.open_input_stream(self._full(path)) as source:
            return bytes(source.readall()).decode()

    def read_json(self, path: str) -> Any:
        """None if it does not exist."""
        if not self.exists(path):
            return None
        try:
            return json.loads(self.read_text(path))
        except ValueError as error:
            raise LakeMismatch(f"{path} is damaged: remove it and run the command again") from error

    def move(self, source: str, target: str) -> None:
        """Raises FileNotFoundError if there is no such file, whatever the store says then."""
        if not self.exists(source):
            raise FileNotFoundError(source)
        self._make_dir(posixpath.dirname(self._full(target)))
        self._fs.move(self._full(source), self._full(target))

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with its content; it need not exist, and another process may
        remove it at the same time."""
        kind = self._fs.get_file_info(self._full(path)).type
        with suppress(FileNotFoundError):
            if kind == pafs.FileType.Directory:
                self._fs.delete_dir(self._full(path))
            elif kind == pafs.FileType.File:
                self._fs.delete_file(self._full(path))

    def remove_file(self, path: str) -> None:
        """Removes a file, and its folder if nothing else is in it."""
        self.remove(path)
        parent = posixpath.dirname(path)
        if isinstance(self._fs, pafs.LocalFileSystem):
            with suppress(OSError):  # there is something in it
                os.rmdir(self._full(parent))
        elif not self.names(parent):
            self.remove(parent)

    def staged(self) -> list[str]:
        """Files that somebody is writing, or was writing when it was killed."""
        return sorted(path for path, _ in self._walk(_ASIDE))

    def sweep_aside(self, before: datetime) -> None:
        """Removes half-written files of processes that were killed."""
        selector = pafs.FileSelector(self._full(_ASIDE), allow_not_found=True, recursive=True)
        for info in self._fs.get_file_info(selector):
            if info.type == pafs.FileType.File and info.mtime and info.mtime < before:
                self.remove(info.path[len(self._base) + 1 :])

    def size(self, path: str) -> int | None:
        info = self._fs.get_file_info(self._full(path))
        return info.size if info.type == pafs.FileType.File else None

    def _walk(self, path: str) -> Iterator[tuple[str, int]]:
        selector = pafs.FileSelector(self._full(path), allow_not_found=True, recursive=True)
        for info in self._fs.get_file_info(selector):
            if info.type == pafs.FileType.File:
                yield info.path[len(self._base) + 1 :], info.size or 0

    def _aside(self, path: str) -> str:
        self._make_dir(self._full(_ASIDE))
        return f"{_ASIDE}/{secrets.token_hex(8)}~{path.replace('/', '~')}"

    def _make_dir(self, full: str) -> None:
        if self._fs.type_name not in _WITHOUT_FOLDERS:
            self._fs.create_dir(full)

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}"


def batch_path(day: str, batch: int) -> str:
    return f"history/day={day}/batch={batch:012}"


def by_day(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows by day of ``ended_at`` (UTC), in order."""
    days = pc.cast(pc.floor_temporal(rows["ended_at"], unit="day"), pa.int64())
    for micros in sorted(pc.unique(days).to_pylist()):
        day = (datetime(1970, 1, 1) + timedelta(microseconds=micros)).date()  # noqa: DTZ001
        yield day.isoformat(), rows.filter(pc.equal(days, micros))


def _opened(root: str) -> tuple[Any, str]:
    scheme, separator, rest = root.partition("://")
    if not separator:
        return pafs.LocalFileSystem(), os.path.abspath(root)
    uri = f"{_FOR_ARROW.get(scheme, scheme)}://{rest}"
    try:
        fs, base = pafs.FileSystem.from_uri(uri)
    except (OSError, pa.ArrowException) as error:
        found = _opened_by_fsspec(root)
        if found is None:
            shown = _without_secrets(root)
            said = str(error).partition("\n")[0].replace(uri, shown)
            raise InvalidOption(f"{shown} cannot be opened as a lake: {said}") from None
        fs, base = found
    return fs, base.rstrip("/")


def _opened_by_fsspec(root: str) -> tuple[Any, str] | None:
    """For schemes that Arrow does not know; None if fsspec is not installed, or cannot either."""
    try:
        from fsspec.core import url_to_fs

        fs, base = url_to_fs(root)
    except (ImportError, ValueError, OSError):
        return None
    return pafs.PyFileSystem(pafs.FSSpecHandler(fs)), base


def _without_secrets(root: str) -> str:
    """A URI may hold a user and a password, and parameters."""
    scheme, separator, rest = root.partition("://")
    if not separator:
        return root
    host, slash, path = rest.partition("?")[0].partition("/")
    user, _, bare = host.rpartition("@")  # abfss://container@account has no password
    return f"{scheme}://{bare if ':' in user else host}{slash}{path}"


def _named(path: str, size: int) -> LakeFile | None:
    found = _FILE.fullmatch(path)
    return found and LakeFile(path, found[1], int(found[2]), size)


Counts = Mapping[str, Mapping[str, int]]


def write_live(folder: Folder, rows: pa.Table, seen_at: datetime, counts: Counts) -> None:
    """``counts`` are the queue's own, by queue and state, to check the rows against."""
    folder.write_table(rows, LIVE_ROWS)
    body = {"seen_at": seen_at.isoformat(), "numbers": counts}
    folder.write_text(json.dumps(body, indent=1), LIVE_NUMBERS)
