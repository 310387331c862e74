"""Run the demo: ``python -m laneway.dev.demo [URL]``; it exits with 1 if the verdict is bad."""

import sys

from laneway import LanewayError, Queue
from laneway.dev.embedded import EmbeddedPostgres, EmbeddedServerError

from .scenario import run_demo
from .tenants import SCHEMA


def main(url: str | None = None, *, report: bool = True) -> int:
    """On a temporary PostgreSQL, or in a schema of its own in the database at ``url``."""
    try:
        good = _on_embedded(report) if url is None else _on_given(url, report)
    except (EmbeddedServerError, LanewayError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; everything the demo created has been removed.", file=sys.stderr)
        return 130
    return 0 if good else 1


def _on_embedded(report: bool) -> bool:
    print("Starting an embedded PostgreSQL 18 (a temporary one, on loopback) ...", flush=True)
    with EmbeddedPostgres() as server:
        return run_demo(server.create_database("demo"), report)


def _on_given(url: str, report: bool) -> bool:
    try:
        return run_demo(url, report)
    finally:
        with Queue(url, schema=SCHEMA) as queue:
            queue.uninstall()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
