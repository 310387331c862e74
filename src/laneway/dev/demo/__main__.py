"""Run the demo: ``python -m laneway.dev.demo [--spark] [URL]``; exits with 1 if a check fails."""

import sys
from collections.abc import Callable
from functools import partial

from laneway import LanewayError, Queue
from laneway.dev.embedded import EmbeddedPostgres, EmbeddedServerError

from .scenario import run_demo
from .tenants import SCHEMA


def main(url: str | None = None, *, report: bool = True, spark: bool = False) -> int:
    """On a temporary PostgreSQL, or in a schema of its own in the database at ``url``."""
    try:
        run = partial(run_demo, report=report, spark=spark)
        good = _on_embedded(run) if url is None else _on_given(url, run)
    except (EmbeddedServerError, LanewayError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; everything the demo created has been removed.", file=sys.stderr)
        return 130
    return 0 if good else 1


def _on_embedded(run: Callable[[str], bool]) -> bool:
    print("Starting a temporary PostgreSQL 18 ...", flush=True)
    with EmbeddedPostgres() as server:
        return run(server.create_database("demo"))


def _on_given(url: str, run: Callable[[str], bool]) -> bool:
    try:
        return run(url)
    finally:
        with Queue(url, schema=SCHEMA) as queue:
            queue.uninstall()


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(*[one for one in given if one != "--spark"][:1], spark="--spark" in given))
