"""Run the demo: ``python -m penstock.demo [URL]``; it exits with 1 if the verdict is bad."""

import sys

from penstock import PenstockError, Queue
from penstock.embedded import EmbeddedPostgres, EmbeddedServerError

from .cast import SCHEMA
from .story import tell


def main(url: str | None = None, *, report: bool = True) -> int:
    """On a throwaway PostgreSQL, or in a schema of its own of the database at ``url``."""
    try:
        good = _on_embedded(report) if url is None else _on_given(url, report)
    except (EmbeddedServerError, PenstockError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; what the demo made is gone.", file=sys.stderr)
        return 130
    return 0 if good else 1


def _on_embedded(report: bool) -> bool:
    print("Starting an embedded PostgreSQL 18 (a temporary one, on loopback) ...", flush=True)
    with EmbeddedPostgres() as server:
        return tell(server.create_database("demo"), report)


def _on_given(url: str, report: bool) -> bool:
    try:
        return tell(url, report)
    finally:
        with Queue(url, schema=SCHEMA) as queue:
            queue.uninstall()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
