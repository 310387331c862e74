"""Handlers that a process imports."""

from pathlib import Path

from opentelemetry import trace


def note_trace(file: str) -> None:
    """Which trace and span it runs in."""
    found = trace.get_current_span().get_span_context()
    Path(file).write_text(f"{found.trace_id:032x} {found.span_id:016x}")
