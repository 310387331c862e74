"""What had not ended when the lake was last brought up to date."""

import json
from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from .folder import LIVE_NUMBERS, LIVE_ROWS, Folder

Numbers = Mapping[str, Mapping[str, int]]


def write_live(folder: Folder, rows: pa.Table, seen_at: datetime, numbers: Numbers) -> None:
    """``numbers`` are the queue's own counts by queue and state, to check the rows against."""
    folder.write_table(rows, LIVE_ROWS)
    body = {"seen_at": seen_at.isoformat(), "numbers": numbers}
    folder.write_text(json.dumps(body, indent=1), LIVE_NUMBERS)
