"""Audit: who did what, from where, to how many."""

from collections.abc import Sequence

from laneway.operations import AuditEntry
from laneway.web.context import PAGE_ROWS, Context, PageView


def audit(context: Context) -> PageView:
    before = context.whole("before") or None
    rows: Sequence[AuditEntry] = context.read("audit", limit=PAGE_ROWS, before=before)
    values = {"rows": rows, "next": rows[-1].id if len(rows) == PAGE_ROWS else None}
    return PageView("audit.html", "Audit", values)
