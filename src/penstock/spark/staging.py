"""One attempt of one task: its rows into a staging table of their own, in one transaction."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError

from .binary_copy import HEAD, TAIL, as_copy
from .connections import ask, connected
from .options import Options
from .placing import placed
from .shaping import shaped
from .statements import statement


class JobIsOver(PenstockError):
    """Spark gave up the job, or another attempt of the task was quicker."""


def stage(
    options: Options, job: str, attempt: int, batches: Iterator[pa.RecordBatch], *, opened: bool
) -> tuple[str | None, int]:
    """The table's name and how many rows are in it; no rows need no table. An ``opened`` job can be
    over before this attempt is: then it leaves nothing."""
    ready = _ready(options, batches)
    first = next(ready, None)
    if first is None:
        return None, 0
    schema = options.address.schema
    with connected(options.address) as connection:
        connection.execute(statement(connection, "utf8").encode())
        name: str = ask(connection, "stage", schema=schema, job=job, attempt=attempt)[0][0]
        blanks: dict[str, Any] = {"schema": schema, "table": name, "columns": first.schema.names}
        text = statement(connection, "copy_in", **blanks)
        rows = first.num_rows
        with connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            copy.write(HEAD)
            copy.write(as_copy(first))
            for batch in ready:
                copy.write(as_copy(batch))
                rows += batch.num_rows
            copy.write(TAIL)
        if opened and not ask(connection, "keep_staged", schema=schema, job=job)[0][0]:
            raise JobIsOver("the job ended before this attempt: what it brought is not needed")
    return name, rows


def _ready(options: Options, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    queue, channel = options["queue"] or "default", options["channel"] or "default"
    for batch in batches:
        if batch.num_rows:
            yield placed(shaped(batch, options["max_payload"]), queue, channel)
