"""A table of Apache Iceberg with what the lake holds: every batch is appended to it once, by one
commit that also notes the batch in the table's properties. So whoever is killed has done all of it
or nothing, and the next one continues there.

The table has files of its own: those of the lake are replaced when a day is compacted or a tenant
erased, and a table that referred to them would lose rows for its readers meanwhile.

pyiceberg finds the catalog, with its credentials, in its own settings. For a Spark that has Iceberg
``spark_sql`` writes the same as statements.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from laneway.errors import InvalidOption, LakeMismatch
from laneway.extras import needs

from .catalog import Batch, Catalog, Tenant, files_of, within
from .columns import HISTORY, checksum, widened
from .folder import Folder
from .owner import lake_mark

if TYPE_CHECKING:
    from pyiceberg.table import Table

Progress = Callable[[str], None]
NOTED = "_iceberg.json"
"""Which tables have copies of the lake's rows: erasing a tenant erases it there too."""

_RETRIES = "commit.retry.num-retries"
# An Iceberg library would put a batch on top of whatever was committed meanwhile: even on itself.
_ALONE = {_RETRIES: "0", "format-version": "2"}
_COMMITTED, _OWNER = "laneway.committed", "laneway.owner"
_TRIES = 20
_SQL_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "string": "string",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us, tz=UTC]": "timestamp",
}


@dataclass(frozen=True, slots=True)
class Appended:
    """Batches and rows that were added to the table; ``waiting``: batches not verified yet."""

    batches: int
    rows: int
    waiting: int


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """``catalog`` is a name in pyiceberg's settings, ``table`` is namespace.name."""

    catalog: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}: {self.table}"


def table_schema() -> pa.Schema:
    """The history's columns, and the day by which the table is partitioned. All may be null, so
    that later versions can add some. Iceberg has no numbers of two bytes."""
    fields = [
        pa.field(f.name, pa.int32() if f.type == pa.int16() else f.type) for f in list(HISTORY)
    ]
    return pa.schema([pa.field("day", pa.date32()), *fields])


def append(
    catalog: Catalog, folder: Folder, target: IcebergTable, *, say: Progress = lambda text: None
) -> Appended:
    """Appends verified batches in their order, up to the first that is not verified."""
    _note(folder, target)
    batches = rows = 0
    while True:
        table = _open(target)  # before the rows are read: erasing changes files first, then this
        done = _done(table, catalog)
        todo = [batch for batch in catalog.batches() if batch.number > done]
        if not todo or todo[0].state not in ("verified", "purged"):
            return Appended(batches, rows, len(todo))
        found = _rows(catalog, folder, todo[0])
        if found is not None and _commit(table, catalog, todo[0], found):
            batches, rows = batches + 1, rows + found.num_rows
            say(f"batch {todo[0].number}: {found.num_rows:,} rows")


def _commit(table: "Table", catalog: Catalog, batch: Batch, rows: pa.Table) -> bool:
    """One commit; False if anybody else has committed since the table was opened."""
    from pyiceberg.exceptions import CommitFailedException

    about = {"laneway.lake": catalog.lake, "laneway.batch": str(batch.number)}
    transaction = table.transaction()
    try:
        transaction.append(rows, snapshot_properties=about)
        owner = json.dumps(lake_mark(catalog))
        transaction.set_properties({_COMMITTED: str(batch.number), _OWNER: owner})
        transaction.commit_transaction()
    except CommitFailedException:
        return False
    return True


def _rows(catalog: Catalog, folder: Folder, batch: Batch) -> pa.Table | None:
    """Those of a batch, in the table's columns; None if its files have changed just now. They must
    be what the database saw: nothing else is ever committed."""
    files = files_of(catalog.files(), batch.number)
    try:
        parts = [folder.read_table(file.path) for file in files]
    except FileNotFoundError:
        return None
    mine = [part.filter(within(part, batch)) for part in parts]
    found = sum(part.num_rows for part in mine), sum(checksum(part) for part in mine)
    if found != (batch.rows, batch.checksum):
        if batch not in catalog.batches():
            return None
        raise LakeMismatch(
            f"the files of batch {batch.number} do not have its {batch.rows:,} rows: run laneway "
            "lake verify --all; nothing was added to the table"
        )
    days = [pc.cast(part["ended_at"], pa.date32()) for part in mine]
    wide = [
        widened(part).add_column(0, "day", day).cast(table_schema())
        for part, day in zip(mine, days, strict=True)
    ]
    return pa.concat_tables(wide) if wide else table_schema().empty_table()


def _done(table: "Table", catalog: Catalog) -> int:
    """The last batch that is in the table, which must be of this lake."""
    owner = table.properties.get(_OWNER)
    if owner is not None and json.loads(owner) != lake_mark(catalog):
        raise LakeMismatch(
            f"the table is not the one of this lake ({catalog.lake!r}): another database or --name "
            "has its batches there; nothing was added: use another table"
        )
    return int(table.properties.get(_COMMITTED, -1))


def _open(target: IcebergTable) -> "Table":
    """Creates the table if it is not there, and adds columns that a later version has."""
    with needs("An Iceberg table", "pyiceberg", "iceberg"):
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
    namespace, dot, _ = target.table.rpartition(".")
    if not dot:
        raise InvalidOption(f"table is {target.table!r}: give namespace.name")
    try:
        catalog = load_catalog(target.catalog)
    except (ValueError, TypeError):  # it may name the address with its password
        raise InvalidOption(
            f"pyiceberg cannot open catalog {target.catalog!r}: its settings are in "
            f".pyiceberg.yaml or PYICEBERG_CATALOG__{target.catalog.upper()}__URI and the like"
        ) from None
    if not catalog.table_exists(target.table):
        catalog.create_namespace_if_not_exists(namespace)
        with suppress(TableAlreadyExistsError):  # somebody else was faster
            _create(catalog, target.table)
    table = catalog.load_table(target.table)
    try:
        if table.properties.get(_RETRIES) != "0":
            with table.transaction() as change:
                change.set_properties({_RETRIES: "0"})
        if missing := set(table_schema().names) - set(table.schema().column_names):
            with table.update_schema() as update:
                update.union_by_name(pa.schema([f for f in table_schema() if f.name in missing]))
    except CommitFailedException:
        return _open(target)
    return catalog.load_table(target.table)


def _create(catalog: Any, name: str) -> None:
    from pyiceberg.transforms import IdentityTransform

    creating = catalog.create_table_transaction(name, table_schema(), properties=_ALONE)
    with creating as creation, creation.update_spec() as spec:
        spec.add_field("day", IdentityTransform(), "day")


def _note(folder: Folder, target: IcebergTable) -> None:
    known = noted(folder)
    if target not in known:
        body = [{"catalog": one.catalog, "table": one.table} for one in (*known, target)]
        folder.write_text(json.dumps(body, indent=1), NOTED)


def noted(folder: Folder) -> list[IcebergTable]:
    """The tables that have copies of the lake's rows."""
    return [IcebergTable(**one) for one in folder.read_json(NOTED) or ()]


@dataclass(frozen=True, slots=True)
class TableErased:
    """``read``: files under the table's location that were read again, row by row."""

    rows: int
    removed: int
    read: int


def erase(target: IcebergTable, tenant: Tenant) -> TableErased:
    """Deletes a tenant's rows from the table, forgets all older snapshots, and removes every file
    that only they had. Then reads what is left."""
    for _ in range(_TRIES):
        table = _open(target)
        if others := sorted(set(table.refs()) - {"main"}):
            raise InvalidOption(
                f"{target} has branches or tags ({', '.join(others)}), which keep old rows: remove "
                "them first"
            )
        before = _reachable(table) | _under(table)
        try:
            rows = _delete(table, tenant)
        except (OSError, pa.ArrowException):
            _read_again(target, table, tenant)  # which of the files it was
            raise
        if rows is None:
            continue
        table = _forget_snapshots(_open(target))
        unused = {path for path in before - _reachable(table) if not path.endswith(".json")}
        for path in unused:
            table.io.delete(path)
        read, found = _read_again(target, table, tenant)
        if found:
            raise LakeMismatch(
                f"{found:,} rows of channel {tenant.channel!r} are still in {target}: stop what "
                "writes to it, and erase again"
            )
        return TableErased(rows, len(unused), read)
    raise LakeMismatch(f"others keep changing {target}: stop them, and erase again")


def _delete(table: "Table", tenant: Tenant) -> int | None:
    """How many rows; None if somebody else has committed meanwhile. There is always a commit: who
    has read the tenant's rows before and appends them now is refused."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    which = _filter(tenant)
    rows = int(table.scan(row_filter=which, selected_fields=("channel",)).to_arrow().num_rows)
    transaction = table.transaction()
    about = {"laneway.erased": "1"}
    try:
        if rows:
            transaction.delete(which, snapshot_properties=about)
        else:
            transaction.append(table_schema().empty_table(), snapshot_properties=about)
        transaction.commit_transaction()
    except (CommitFailedException, ValidationException):
        return None
    return rows


def _filter(tenant: Tenant) -> Any:
    from pyiceberg.expressions import And, EqualTo

    channel = EqualTo("channel", tenant.channel)
    return channel if tenant.queue is None else And(channel, EqualTo("queue", tenant.queue))


def _forget_snapshots(table: "Table") -> "Table":
    current = table.current_snapshot()
    old = [one.snapshot_id for one in table.snapshots() if one != current]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    return table.refresh()


def _reachable(table: "Table") -> set[str]:
    """Every file that any snapshot needs."""
    found = set()
    for snapshot in table.snapshots():
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            found.add(manifest.manifest_path)
            found |= {
                entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)
            }
    return found


def _under(table: "Table") -> set[str]:
    """Every file at the table's place, needed or not: a killed process leaves some."""
    return set(_listed(table))


def _listed(table: "Table") -> Iterator[str]:
    location = table.location().rstrip("/")
    fs, base = _place(table, location)
    for info in fs.get_file_info(pafs.FileSelector(base, recursive=True, allow_not_found=True)):
        if info.type == pafs.FileType.File:
            yield f"{location}{info.path[len(base) :]}"


def _place(table: "Table", path: str) -> tuple[Any, str]:
    io: Any = table.io
    scheme, netloc, base = io.parse_location(path)
    return io.fs_by_scheme(scheme, netloc), base.rstrip("/")


def _read_again(target: IcebergTable, table: "Table", tenant: Tenant) -> tuple[int, int]:
    """How many files were read, and how many rows of the tenant are in them. A file that cannot be
    read may hold some: that is an error. One that is gone holds none, if no snapshot needs it."""
    needed = _reachable(table)
    paths = {path for path in _under(table) | needed if path.endswith(".parquet")}
    read = found = 0
    unread = {}
    for path in sorted(paths):
        fs, base = _place(table, path)
        try:
            with fs.open_input_file(base) as source:
                found += _count(pq.ParquetFile(source).read(["queue", "channel"]), tenant)
            read += 1
        except FileNotFoundError:
            if path in needed:
                unread[path] = "is missing"
        except (OSError, pa.ArrowException, KeyError):  # without the columns it is none of ours
            unread[path] = "cannot be read"
    if unread:
        path, problem = next(iter(unread.items()))
        others = f", and {len(unread) - 1:,} more like it" if len(unread) > 1 else ""
        raise LakeMismatch(
            f"{path} of {target} {problem}{others}: it is not proved that no rows of channel "
            f"{tenant.channel!r} are left there. Stop what writes to the table and restore the "
            "file, or drop the table and fill it anew with laneway lake iceberg; then erase again"
        )
    return read, found


def _count(rows: pa.Table, tenant: Tenant) -> int:
    mask = pc.equal(rows["channel"], tenant.channel)
    if tenant.queue is not None:
        mask = pc.and_(mask, pc.equal(rows["queue"], tenant.queue))
    return int(pc.sum(mask).as_py() or 0)


def spark_sql(catalog: Catalog, folder: Folder, table: str) -> list[str]:
    """The same for a Spark that has Iceberg: a table, and a statement for each batch that may be
    repeated. ``table`` is catalog.namespace.name."""
    name = ".".join(map(_quoted, table.split(".")))
    if table.count(".") < 2:
        raise InvalidOption(f"table is {table!r}: give catalog.namespace.name")
    columns = ", ".join(f"{_quoted(f.name)} {_SQL_TYPES[str(f.type)]}" for f in table_schema())
    made = (
        f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('format-version' = '2')"
    )
    return [made, *_merges(catalog, folder, name)]


def _merges(catalog: Catalog, folder: Folder, name: str) -> Iterator[str]:
    files = catalog.files()
    names = table_schema().names[1:]
    columns = ", ".join(map(_quoted, names))
    for batch in catalog.batches("verified", "purged"):
        paths: Sequence[str] = [folder.url(file.path) for file in files_of(files, batch.number)]
        if not paths:
            continue
        rows = " UNION ALL ".join(
            f"SELECT CAST(ended_at AS DATE) AS day, {columns} FROM parquet.{_quoted(path)}"  # noqa: S608
            for path in paths
        )
        # Rows are told apart by their position, so a batch that is there already adds nothing.
        yield (
            f"MERGE INTO {name} AS t USING ({rows}) AS s "
            "ON t.day = s.day AND t.xid = s.xid AND t.id = s.id WHEN NOT MATCHED THEN INSERT *"
        )


def erase_sql(table: str, tenant: Tenant) -> list[str]:
    """The statements that erase a tenant there."""
    first, *rest = table.split(".")
    name = ".".join(map(_quoted, (first, *rest)))
    where = f"channel = {_text(tenant.channel)}"
    if tenant.queue is not None:
        where += f" AND queue = {_text(tenant.queue)}"
    call = f"CALL {_quoted(first)}.system"
    of = f"table => {_text('.'.join(rest))}, older_than => current_timestamp()"
    return [
        f"DELETE FROM {name} WHERE {where}",  # noqa: S608
        f"{call}.expire_snapshots({of}, retain_last => 1)",
        f"{call}.remove_orphan_files({of})",
    ]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
