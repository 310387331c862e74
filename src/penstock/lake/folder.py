"""The lake's folder: where each thing lies, on any file system that Arrow knows.

::

    history/day=2026-11-15/batch=000000000017/part-00000.parquet
    live/snapshot.parquet          what had not ended, at the last sync
    live/numbers.json              when that was, and what the queue's own counts said
    report/tables/<table>/…        the answers, as Parquet
    report/report.html             the page
    _staging/                      half-written files; readers skip names with an underscore
"""

import json
import os
import posixpath
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from penstock.errors import InvalidOption, LakeMismatch

_ASIDE = "_staging"
_FILE = re.compile(r"history/day=(\d{4}-\d\d-\d\d)/batch=(\d+)/[^_./][^/]*\.parquet")
_WILD = re.compile(r"[][{}*?\\]")
_DAY = pa.schema([("day", pa.date32())])
LIVE_ROWS = "live/snapshot.parquet"
LIVE_NUMBERS = "live/numbers.json"


class LakeFile(NamedTuple):
    """A file of the history: its path under the lake, its day and batch, its size."""

    path: str
    day: str
    batch: int
    size: int


class Folder:
    """``root`` is a local path or a URI (``file:``, ``s3:``, ``gs:``, ``hdfs:`` …)."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._fs, self._base = _opened(self.root)

    def __repr__(self) -> str:
        return f"<Folder {self.root}>"

    def url(self, path: str) -> str:
        """What Spark and people call it."""
        return f"{self.root}/{path}"

    def pattern(self, path: str) -> str:
        """The same for Spark's readers, which take names for patterns: of one file only."""
        return _WILD.sub(r"\\\g<0>", self.url(path))

    def history_files(self) -> list[LakeFile]:
        """All Parquet files of the history, by path."""
        files = (_named(path, size) for path, size in self._walk("history"))
        return sorted(file for file in files if file is not None)

    def exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(self._full(path)).type != pafs.FileType.NotFound)

    def names(self, path: str) -> list[str]:
        """What lies directly in a folder; nothing if it is not there."""
        selector = pafs.FileSelector(self._full(path).rstrip("/"), allow_not_found=True)
        return sorted(info.base_name for info in self._fs.get_file_info(selector))

    def write_table(self, table: pa.Table, path: str) -> int:
        """Whole or not at all: written aside, then moved into place. Answers its size."""
        aside, size = self.write_aside(table, path)
        self.move(aside, path)
        return size

    def write_aside(self, table: pa.Table, path: str) -> tuple[str, int]:
        """Where readers do not look, under a name that no other process has; and its size."""
        aside = self._aside(path)
        pq.write_table(
            table, self._full(aside), filesystem=self._fs, compression="zstd", store_schema=False
        )
        return aside, int(self._fs.get_file_info(self._full(aside)).size or 0)

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        with self._fs.open_input_file(self._full(path)) as source:
            return pq.ParquetFile(source).read(columns)

    def read_batches(self, path: str, rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of a file, so many at a time: how large it is does not matter."""
        with self._fs.open_input_file(self._full(path)) as source:
            yield from pq.ParquetFile(source).iter_batches(rows, use_threads=False)

    def least(self, path: str, column: str) -> Any:
        """The smallest value of a column, from the file's own statistics; None if it has none."""
        try:
            with self._fs.open_input_file(self._full(path)) as source:
                about = pq.ParquetFile(source).metadata
        except (OSError, pa.ArrowException) as error:
            raise LakeMismatch(
                f"{path} is damaged ({error}): penstock lake verify --all has it written again if "
                "its rows are still in the history; else restore it from a backup"
            ) from error
        place = about.schema.names.index(column)
        groups = (about.row_group(n).column(place).statistics for n in range(about.num_row_groups))
        values = [group.min for group in groups if group is not None and group.has_min_max]
        return min(values, default=None)

    def read_rows(self, path: str) -> list[dict[str, Any]]:
        """All rows of a table that Spark has written, partitions as columns."""
        names = [name for name, _ in self._walk(path) if name.endswith(".parquet")]
        if not names:
            return []
        by_day = any("/day=" in name for name in names)
        dataset = ds.dataset(
            self._full(path),
            filesystem=self._fs,
            format="parquet",
            partitioning=ds.partitioning(_DAY, flavor="hive") if by_day else None,
        )
        rows: list[dict[str, Any]] = dataset.to_table().to_pylist()
        return rows

    def write_text(self, text: str, path: str) -> None:
        aside = self._aside(path)
        with self._fs.open_output_stream(self._full(aside)) as target:
            target.write(text.encode())
        self.move(aside, path)

    def read_text(self, path: str) -> str:
        with self._fs.open_input_stream(self._full(path)) as source:
            return bytes(source.readall()).decode()

    def read_json(self, path: str) -> Any:
        """None if it is not there."""
        if not self.exists(path):
            return None
        try:
            return json.loads(self.read_text(path))
        except ValueError as error:
            raise LakeMismatch(f"{path} is damaged: remove it, and run it again") from error

    def move(self, source: str, target: str) -> None:
        self._fs.create_dir(posixpath.dirname(self._full(target)))
        self._fs.move(self._full(source), self._full(target))

    def remove(self, path: str) -> None:
        """A file, or a folder with all in it; nothing if it is not there, or if somebody else
        removes it just now."""
        kind = self._fs.get_file_info(self._full(path)).type
        with suppress(FileNotFoundError):
            if kind == pafs.FileType.Directory:
                self._fs.delete_dir(self._full(path))
            elif kind == pafs.FileType.File:
                self._fs.delete_file(self._full(path))

    def sweep_aside(self, before: datetime) -> None:
        """What processes that were killed left half-written."""
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
        self._fs.create_dir(self._full(_ASIDE))
        return f"{_ASIDE}/{secrets.token_hex(8)}~{path.replace('/', '~')}"

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}"


def batch_path(day: str, batch: int) -> str:
    return f"history/day={day}/batch={batch:012}"


def _opened(root: str) -> tuple[Any, str]:
    if "://" in root:
        try:
            fs, base = pafs.FileSystem.from_uri(root)
        except (OSError, pa.ArrowException) as error:
            said = str(error).partition("\n")[0]
            raise InvalidOption(f"{root} cannot be a lake: {said}") from error
        return fs, base.rstrip("/")
    return pafs.LocalFileSystem(), os.path.abspath(root)


def _named(path: str, size: int) -> LakeFile | None:
    found = _FILE.fullmatch(path)
    return found and LakeFile(path, found[1], int(found[2]), size)
