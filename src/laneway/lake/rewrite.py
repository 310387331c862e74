"""Writes files anew: one for all of an old day, or without what there is of one tenant's channel,
which is erased from the database too, with proof.

Every step can be repeated: what a killed run left, the next one finds. The database comes first, so
that no sync can bring rows back that are gone from the lake.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption, LakeMismatch
from laneway.inspection import MessageInfo
from laneway.operations import AuditNote

from . import iceberg
from .catalog import Batch, Catalog, CatalogFile, Checked, Tenant, within
from .columns import AT_ONCE, checksum
from .folder import LIVE_ROWS, Folder
from .purge import count_minutes
from .sync import snapshot_live, sync
from .verify import finish_compactions, problem_with, sweep

Progress = Callable[[str], None]
_PAGE = 1000
_PASSES = 20
_PART = re.compile(r"part-(\d+)\.parquet$")


@dataclass(frozen=True, slots=True)
class Compacted:
    days: int
    files: int


def compact(
    catalog: Catalog, folder: Folder, *, older: timedelta, say: Progress = lambda text: None
) -> Compacted:
    """Compacts days that ended more than ``older`` ago, if all their batches are verified and their
    files are intact."""
    finish_compactions(catalog, folder)
    before = catalog.ended_before(older)
    open_batches = {batch.number for batch in catalog.batches("planned", "written")}
    by_day: dict[date, list[CatalogFile]] = defaultdict(list)
    for file in catalog.files():
        by_day[file.day].append(file)
    days = count = 0
    for day, files in sorted(by_day.items()):
        busy = any(set(file.batches) & open_batches for file in files)
        if day >= before or len(files) < 2 or busy or any(problem_with(folder, f) for f in files):
            continue
        if _merge(catalog, folder, day, files):
            days, count = days + 1, count + len(files)
            say(f"{day}: merged {len(files)} files")
    sweep(catalog, folder)
    return Compacted(days, count)


def _merge(catalog: Catalog, folder: Folder, day: date, files: list[CatalogFile]) -> bool:
    """The catalog changes in one transaction. Until then the new file is only staged; after that
    whoever comes next puts it in place. False if another compaction was faster."""
    rows = _read(folder, files)
    if rows is None:
        return False
    # It overwrites the first file: for a moment readers see old and new rows, but never neither.
    staged, size = folder.write_aside(rows, files[0].path)
    merged = CatalogFile(
        path=files[0].path,
        day=day,
        batches=sorted({batch for file in files for batch in file.batches}),
        rows=rows.num_rows,
        checksum=sum((file.checksum for file in files), Decimal(0)),
        size=size,
        staged=staged,
        replaces=[file.path for file in files],
    )
    noted = catalog.note_compacted(merged)
    finish_compactions(catalog, folder)
    folder.remove(staged)
    return noted


def _read(folder: Folder, files: list[CatalogFile]) -> pa.Table | None:
    """All rows in order; None if another compaction has begun to put its file in place, or the
    files have different columns."""
    try:
        tables = [folder.read_table(file.path) for file in files]
    except FileNotFoundError:
        return None
    if len({table.num_columns for table in tables}) > 1:
        return None  # written by different versions: their checksums could not be added up
    rows = pa.concat_tables(tables)
    if rows.num_rows != sum(file.rows for file in files):
        return None
    return rows.sort_by([("xid", "ascending"), ("id", "ascending")])


@dataclass(frozen=True, slots=True)
class TenantData:
    """What there is of a tenant: rows by table, and rows in so many of the lake's files."""

    messages: int
    dead_letters: int
    history: int
    results: int
    lake_rows: int
    files: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What was deleted, and the proof: ``files_read`` is how many files were read again from the
    first row to the last, ``found_again`` what they and the database still hold: 0.

    ``tables`` of Iceberg were erased and read too. ``streams`` and ``lakes`` may have copies: they
    were not touched.
    """

    messages: int
    dead_letters: int
    history: int
    lake_rows: int
    files_rewritten: int
    files_removed: int
    files_read: int
    found_again: int
    streams: list[str]
    lakes: list[str]
    tables: list[str]


def look(catalog: Catalog, folder: Folder, tenant: Tenant) -> TenantData:
    """What would be erased. Nothing is changed."""
    found = catalog.tenant_rows(tenant)
    counts = [_count(folder, file.path, tenant) for file in catalog.files()]
    rows = [count for count in counts if count]
    return TenantData(*found[:4], sum(rows), len(rows))


def erase(
    catalog: Catalog,
    folder: Folder,
    tenant: Tenant,
    *,
    actor: str = "",
    say: Progress = lambda text: None,
) -> Erased:
    """Refuses, and changes nothing, while messages of the tenant are being worked on, or something
    would publish more."""
    address = catalog.address
    with Queue(address.url, schema=address.schema, upkeep_every=None) as queue:
        _check_idle(queue, catalog, tenant)
        _check_files(catalog, folder, tenant)
        _note(queue, actor, "erase", catalog, tenant)
        before = catalog.tenant_rows(tenant)
        _end_messages(queue, tenant)
        # Ending them has added to the history.
        count_minutes(catalog, (catalog.now() + timedelta(days=2)).date())
        history = catalog.erase_history(tenant)
        say(f"database: {history:,} rows of history")
        _correct_planned(catalog)
        sync(catalog, folder, say=say)
        rewriting = _Rewriting(catalog, folder, tenant, say)
        rewriting.run()
        _remove_copies(catalog, folder, tenant)
        tables = iceberg.noted(folder)
        in_tables = [iceberg.erase(table, tenant) for table in tables]
        files_read, found = _read_again(catalog, folder, tenant)
        if found:
            raise LakeMismatch(
                f"{found:,} rows of channel {tenant.channel!r} came while it was erased: stop what "
                "publishes or syncs them, and run it again"
            )
        done = Erased(
            messages=before.messages,
            dead_letters=before.dead_letters,
            history=history,
            lake_rows=rewriting.rows,
            files_rewritten=rewriting.rewritten,
            files_removed=rewriting.removed,
            files_read=files_read + sum(table.read for table in in_tables),
            found_again=found,
            streams=[reader.name for reader in catalog.readers()],
            lakes=[name for name in catalog.lakes() if name != catalog.lake],
            tables=[str(table) for table in tables],
        )
        _note(queue, actor, "erased", catalog, tenant, done)
    return done


def _check_idle(queue: Queue, catalog: Catalog, tenant: Tenant) -> None:
    leased = sum(info.state == "leased" for page in _pages(queue, tenant) for info in page)
    if leased:
        raise InvalidOption(
            f"{leased:,} messages of channel {tenant.channel!r} are being worked on: wait "
            "until they have ended, or cancel them with laneway cancel --running"
        )
    making = [
        f"{one.queue}/{one.name}"
        for one in queue.schedules.list()
        if one.channel == tenant.channel and tenant.queue in (None, one.queue)
    ]
    if making:
        raise InvalidOption(
            f"schedules publish to channel {tenant.channel!r} ({', '.join(making)}): remove them "
            "first with laneway schedules remove"
        )
    if held := catalog.tenant_rows(tenant).held:
        raise InvalidOption(
            f"{held:,} messages of channel {tenant.channel!r} wait in flows: let these end, or "
            "cancel them with laneway flows cancel"
        )


def _check_files(catalog: Catalog, folder: Folder, tenant: Tenant) -> None:
    """A damaged file can be written again only while the history has all its rows."""
    finish_compactions(catalog, folder)
    for file in catalog.files():
        whole = folder.size(file.path) == file.size
        if whole and not _holds(folder, file, tenant):
            continue
        if problem := problem_with(folder, file):
            raise LakeMismatch(
                f"{file.path} is damaged ({problem}): run laneway lake verify --all, and sync or "
                "restore it; then erase again"
            )


def _holds(folder: Folder, file: CatalogFile, tenant: Tenant) -> bool:
    if not folder.may_hold(file.path, "channel", tenant.channel):
        return False
    return _count(folder, file.path, tenant) > 0


def _end_messages(queue: Queue, tenant: Tenant) -> None:
    """Cancels what waits and bulk operations, discards dead letters, and removes the channel with
    its limits."""
    for page in _pages(queue, tenant):
        queue.cancel([info.id for info in page])
    for operation in queue.operations.list(limit=_PAGE):
        wanted = operation.wanted
        theirs = wanted.get("channel") == tenant.channel
        if operation.state == "running" and theirs and tenant.queue in (None, wanted.get("queue")):
            queue.operations.cancel(operation.id)
    while queue.dead_letters.discard(queue=tenant.queue, channel=tenant.channel):
        pass
    for info in queue.channels(queue=tenant.queue, channel=tenant.channel):
        queue.channel(info.channel, queue=info.queue).remove()


def _pages(queue: Queue, tenant: Tenant) -> Iterator[list[MessageInfo]]:
    after: int | None = 0
    while after is not None:
        page = queue.messages(queue=tenant.queue, channel=tenant.channel, limit=_PAGE, after=after)
        yield page
        after = page.next


def _correct_planned(catalog: Catalog) -> None:
    """Batches of any lake that were planned before the rows went, and are not written yet."""
    for name in catalog.lakes():
        other = replace(catalog, lake=name)
        for batch in other.batches("planned"):
            rows = other.history_rows(batch)
            other.correct(batch, (rows.num_rows, checksum(rows)))


class _Rewriting:
    """The files that have rows of the tenant, written anew without them."""

    def __init__(self, catalog: Catalog, folder: Folder, tenant: Tenant, say: Progress) -> None:
        self._catalog, self._folder, self._tenant, self._say = catalog, folder, tenant, say
        self.rows = self.rewritten = self.removed = 0

    def run(self) -> None:
        """Until a whole pass finds nothing: a compaction may have merged files meanwhile."""
        for _ in range(_PASSES):
            touched = sum(map(self._rewrite, self._files()))
            if not touched:
                return
        raise LakeMismatch("others keep changing the lake's files: stop them, and run it again")

    def _files(self) -> list[CatalogFile]:
        finish_compactions(self._catalog, self._folder)
        return self._catalog.files()

    def _rewrite(self, file: CatalogFile) -> bool:
        """Whether it had rows of the tenant. Until the catalog has changed, in one transaction, the
        new file is only staged; after that whoever comes next puts it in place."""
        folder = self._folder
        if not folder.exists(file.path):
            return True  # somebody has replaced it: look again
        if not _holds(folder, file, self._tenant):
            return False
        rows = folder.read_table(file.path)
        mask = _mask(rows, self._tenant)
        gone, kept = rows.filter(mask), rows.filter(pc.invert(mask))
        left = _staged(folder, file, kept) if kept.num_rows else None
        noted = self._catalog.note_erased(file, left, self._lost(file, gone))
        if noted and left is None:
            folder.remove_file(file.path)
        finish_compactions(self._catalog, folder)
        if left is not None:
            folder.remove(str(left.staged))
        if noted:
            self.rows += gone.num_rows
            self.rewritten += left is not None
            self.removed += left is None
            self._say(f"{file.path}: {gone.num_rows:,} of {rows.num_rows:,} rows")
        return True

    def _lost(self, file: CatalogFile, gone: pa.Table) -> dict[Batch, Checked]:
        """What each batch of the file loses."""
        lost = {}
        for batch in self._catalog.batches():
            if batch.number in file.batches:
                rows = gone.filter(within(gone, batch))
                if rows.num_rows:
                    lost[batch] = rows.num_rows, checksum(rows)
        return lost


def _staged(folder: Folder, file: CatalogFile, kept: pa.Table) -> CatalogFile:
    """The new file has a name of its own: a sync that was asleep may still move its old one into
    the old place, where nobody knows it and the next sweep removes it."""
    found = _PART.search(file.path)
    number = int(found[1]) + 1 if found else 0
    path = f"{file.path.rpartition('/')[0]}/part-{number:05}.parquet"
    staged, size = folder.write_aside(kept, path)
    return file._replace(
        path=path,
        rows=kept.num_rows,
        checksum=checksum(kept),
        size=size,
        staged=staged,
        replaces=[file.path],
    )


def _remove_copies(catalog: Catalog, folder: Folder, tenant: Tenant) -> None:
    """Leftovers, what somebody has staged, the snapshot of what is alive, and the report, which the
    next laneway lake report computes anew."""
    sweep(catalog, folder)
    for path in folder.staged():
        if _count(folder, path, tenant):
            folder.remove(path)
    snapshot_live(catalog, folder)
    folder.remove("report")


def _read_again(catalog: Catalog, folder: Folder, tenant: Tenant) -> tuple[int, int]:
    """How many files were read, and how many rows were found in them and in the database."""
    paths = [*(file.path for file in folder.history_files()), LIVE_ROWS, *folder.staged()]
    in_files = sum(_count(folder, path, tenant) for path in paths)
    found = catalog.tenant_rows(tenant)
    return len(paths), in_files + sum(found)


def _count(folder: Folder, path: str, tenant: Tenant) -> int:
    """How many of its rows are the tenant's, row by row. A file that somebody is just writing has
    none that can be read."""
    try:
        return sum(_counts(folder, path, tenant))
    except FileNotFoundError:
        return 0
    except (OSError, pa.ArrowException):
        if path in folder.staged():
            return 0
        raise


def _counts(folder: Folder, path: str, tenant: Tenant) -> Iterator[int]:
    for rows in folder.read_batches(path, AT_ONCE, ["queue", "channel"]):
        yield pc.sum(_mask(rows, tenant)).as_py() or 0


def _mask(rows: pa.Table | pa.RecordBatch, tenant: Tenant) -> pa.Array:
    mask = pc.equal(rows["channel"], tenant.channel)
    return mask if tenant.queue is None else pc.and_(mask, pc.equal(rows["queue"], tenant.queue))


def _note(
    queue: Queue,
    actor: str,
    action: str,
    catalog: Catalog,
    tenant: Tenant,
    done: Erased | None = None,
) -> None:
    target = {"lake": catalog.lake, **tenant._asdict()} | (asdict(done) if done else {})
    rows = None if done is None else done.history + done.lake_rows
    note = AuditNote(actor or "lake", "cli" if actor else "api", action, target, rows)
    database = queue.database
    database.run(database.engine.operations.add_audit(note))
